#include <filesystem>
#include <iostream>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engine/core/error.hpp"
#include "engine/train/factories.hpp"
#include "predict/tune.hpp"
#include "tools/invocation.hpp"
#include "tools/point_progress.hpp"
#include "tools/point_runs.hpp"
#include "tools/scenario_options.hpp"

namespace gradsync {
namespace {

namespace fs = std::filesystem;

struct TuneOptions {
  std::string file;
  ScenarioOptions scenario;
  std::string out;
  std::optional<int> jobs;
  bool json = false;
};

/// Of all parameters, which is also what the buckets hold.
Bytes model_bytes(const Scenario& scenario) {
  const auto inputs = load_inputs(scenario);
  const auto model = make_model(scenario, *inputs, 0, 1, meta_device());
  Bytes bytes = 0;
  for (const ParameterPtr& parameter : model->parameters()) bytes += parameter->data.nbytes();
  return bytes;
}

nlohmann::ordered_json to_json(const TuneTrial& trial) {
  using Json = nlohmann::ordered_json;
  Json json = {{"bucket_cap_mb", Json::parse(trial.setting.cap)},
               {"first_bucket_cap_mb", Json::parse(trial.setting.first)}};
  json.update(gradsync::to_json(trial.result));
  return json;
}

nlohmann::ordered_json to_json(const TuneAnswer& answer) {
  nlohmann::ordered_json trials = nlohmann::ordered_json::array();
  for (const TuneTrial& trial : answer.trials) trials.push_back(to_json(trial));
  for (const TuneTrial& trial : answer.first_trials) trials.push_back(to_json(trial));
  return {{"schema_version", 1},
          {"now", to_json(answer.baseline)},
          {"best", to_json(answer.best)},
          {"best_cap_alone", to_json(answer.best_cap)},
          {"least_seconds", answer.least_seconds},
          {"trials", trials}};
}

int tune(const TuneOptions& options) {
  const Scenario scenario = load_scenario(options.file, options.scenario);
  const fs::path out =
      options.out.empty() ? fs::path("runs") / (scenario.name + "-tune") : fs::path(options.out);
  const int jobs = options.jobs.value_or(default_jobs(scenario));
  PointProgress progress(0);
  const auto run = [&](const std::vector<BucketSetting>& settings) {
    std::vector<Scenario> scenarios;
    for (const BucketSetting& setting : settings) {
      std::vector<ScenarioOverride> overrides = overrides_of(options.scenario);
      overrides.push_back(
          {"ddp.bucket_cap_mb", setting.cap, "tune's bucket_cap_mb=" + setting.cap});
      overrides.push_back({"ddp.first_bucket_cap_mb", setting.first,
                           "tune's first_bucket_cap_mb=" + setting.first});
      scenarios.push_back(load_scenario(options.file, overrides));
    }
    progress.expect(scenarios.size());
    std::vector<PointResult> results;
    for (const PointRun& finished :
         run_points(scenarios, out / "points", jobs,
                    [&](std::size_t, const PointRun& point) { progress.done(point.reused); })) {
      results.push_back(finished.result);
    }
    return results;
  };
  const auto text = [](const std::optional<double>& mib) {
    return mib ? fmt::format("{:g}", *mib) : std::string("null");
  };
  const BucketSetting baseline{text(scenario.ddp.bucket_cap_mb),
                               text(scenario.ddp.first_bucket_cap_mb)};
  const TuneAnswer answer = tune_buckets(baseline, model_bytes(scenario), run);
  progress.clear();
  std::cout << (options.json ? to_json(answer).dump(2) + "\n" : describe(answer));
  return 0;
}

}  // namespace

void add_tune_command(CLI::App& app, Invocation& invocation) {
  CLI::App* command =
      app.add_subcommand("tune", "Find the bucket_cap_mb and first bucket with the shortest step");
  command->footer("Runs are kept in the folder of --out and not run again.");
  auto options = std::make_shared<TuneOptions>();
  command->add_option("SCENARIO", options->file, "JSON file (see docs/scenarios.md)")->required();
  add_scenario_options(*command, options->scenario);
  command->add_option("--out", options->out, "Folder for results (default: runs/NAME-tune)")
      ->type_name("DIR");
  command
      ->add_option("--jobs", options->jobs,
                   "Runs at a time (default: one a core; 1 on real backends)")
      ->check(CLI::PositiveNumber);
  command->add_flag("--json", options->json, "Print the answer as JSON");
  command->callback(
      [options, &invocation] { invocation.action = [options] { return tune(*options); }; });
}

}  // namespace gradsync
