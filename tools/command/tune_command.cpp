#include <iostream>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gradsync/core/error.hpp"
#include "gradsync/core/json_text.hpp"
#include "gradsync/predict/tune.hpp"
#include "gradsync/testbed/rank/factories.hpp"
#include "tools/command/invocation.hpp"
#include "tools/command/run_variants.hpp"

namespace gradsync {
namespace {

constexpr const char* kTuneName = "tune";

struct TuneOptions {
  VariantRunsOptions runs;
  double uncertainty_percent = kStepUncertainty * 100;
  bool json = false;
};

/// The size of all parameters, and thus of all buckets.
Bytes model_bytes(const Scenario& scenario) {
  const auto inputs = load_inputs(scenario);
  const auto model = make_model(scenario, *inputs, 0, 1, meta_device());
  Bytes bytes = 0;
  for (const ParameterPtr& parameter : model->parameters()) bytes += parameter->data.nbytes();
  return bytes;
}

nlohmann::ordered_json to_json(const TuneTrial& trial) {
  using Json = nlohmann::ordered_json;
  Json json = {{"bucket_cap_mb", parse_json(trial.setting.cap)},
               {"first_bucket_cap_mb", parse_json(trial.setting.first)}};
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
          {"uncertainty", answer.uncertainty},
          {"is_worth_it", answer.is_worth_it()},
          {"trials", trials}};
}

int tune(const TuneOptions& options) {
  const Scenario scenario = load_changed(options.runs, {});
  VariantRuns runs(options.runs, results_folder(options.runs, kTuneName, scenario));
  const auto run = [&](const std::vector<BucketSetting>& settings) {
    std::vector<Scenario> scenarios;
    for (const BucketSetting& setting : settings) {
      scenarios.push_back(load_changed(
          options.runs, {{"ddp.bucket_cap_mb", setting.cap, "tune's bucket_cap_mb=" + setting.cap},
                         {"ddp.first_bucket_cap_mb", setting.first,
                          "tune's first_bucket_cap_mb=" + setting.first}}));
    }
    std::vector<PointResult> results;
    for (const CachedRun& finished : runs.run(scenarios)) results.push_back(finished.result);
    return results;
  };
  const auto text = [](const std::optional<double>& mib) {
    return mib ? fmt::format("{:g}", *mib) : std::string("null");
  };
  const BucketSetting baseline{text(scenario.ddp.bucket_cap_mb),
                               text(scenario.ddp.first_bucket_cap_mb)};
  TuneAnswer answer = tune_buckets(baseline, model_bytes(scenario), run);
  answer.uncertainty = options.uncertainty_percent / 100;
  std::cout << (options.json ? dump_json(to_json(answer), 2) + "\n" : describe(answer));
  return 0;
}

}  // namespace

void add_tune_command(CLI::App& app, Invocation& invocation) {
  CLI::App* command = app.add_subcommand(
      kTuneName, "Find the bucket_cap_mb and the first bucket with the shortest step");
  command->footer("Finished runs are kept in the folder of --out, and not repeated.");
  auto options = std::make_shared<TuneOptions>();
  add_variant_runs_options(*command, kTuneName, options->runs);
  command
      ->add_option("--uncertainty", options->uncertainty_percent,
                   "In percent of a step: a smaller gain is called no difference")
      ->check(CLI::Range(0.0, 100.0))
      ->capture_default_str();
  command->add_flag("--json", options->json, "Print the result as JSON");
  command->callback(
      [options, &invocation] { invocation.action = [options] { return tune(*options); }; });
}

}  // namespace gradsync
