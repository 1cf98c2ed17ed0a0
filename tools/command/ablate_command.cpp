#include <algorithm>
#include <iostream>
#include <memory>

#include <nlohmann/json.hpp>

#include "gradsync/core/error.hpp"
#include "gradsync/core/json_text.hpp"
#include "gradsync/predict/ablation.hpp"
#include "tools/command/invocation.hpp"
#include "tools/command/run_variants.hpp"

namespace gradsync {
namespace {

constexpr const char* kAblateName = "ablate";

struct AblateOptions {
  VariantRunsOptions runs;
  bool json = false;
};

int ablate(const AblateOptions& options) {
  std::vector<Scenario> scenarios{load_changed(options.runs, {})};
  const std::vector<Ablation> without = ablations(scenarios.front());
  if (without.empty()) {
    throw Error(
        ErrorCode::kUsage,
        options.runs.file + " has neither imperfections nor faults: there is nothing to remove");
  }
  for (const Ablation& ablation : without) {
    scenarios.push_back(load_changed(options.runs, ablation.overrides));
  }
  const std::vector<CachedRun> runs =
      VariantRuns(options.runs, results_folder(options.runs, kAblateName, scenarios.front()))
          .run(scenarios);

  AblationAnswer answer;
  answer.as_is = runs.front().result;
  for (std::size_t i = 0; i < without.size(); ++i) {
    answer.rows.push_back({without[i], runs[i + 1].result});
  }
  std::cout << (options.json ? dump_json(to_json(answer), 2) + "\n" : describe(answer));
  const bool none = std::none_of(runs.begin(), runs.end(), [](const CachedRun& run) {
    return run.result.outcome == "completed";
  });
  if (none) std::cerr << "gradsync ablate: " << runs.front().result.error << '\n';
  return none ? 1 : 0;
}

}  // namespace

void add_ablate_command(CLI::App& app, Invocation& invocation) {
  CLI::App* command = app.add_subcommand(
      kAblateName,
      "Run a scenario without each of its imperfections and faults, and print what each costs");
  command->footer(
      "A run that does not complete is shown with its outcome. If removing a fault makes a hang "
      "disappear,\nthat fault is its cause. Finished runs are kept in the folder of --out, and not "
      "repeated. The exit\nstatus is 1 if no run completed.");
  auto options = std::make_shared<AblateOptions>();
  add_variant_runs_options(*command, kAblateName, options->runs);
  command->add_flag("--json", options->json, "Print the result as JSON");
  command->callback(
      [options, &invocation] { invocation.action = [options] { return ablate(*options); }; });
}

}  // namespace gradsync
