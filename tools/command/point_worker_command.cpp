#include <memory>

#include <nlohmann/json.hpp>

#include "gradsync/core/json_text.hpp"
#include "gradsync/predict/point_result.hpp"
#include "gradsync/testbed/record/files.hpp"
#include "gradsync/testbed/result/run_result.hpp"
#include "tools/command/backend_registry.hpp"
#include "tools/command/invocation.hpp"

namespace gradsync {
namespace {

struct PointWorkerOptions {
  std::string scenario;
  std::string result;
};

/// One run of a sweep: writes a few numbers to a file, whatever the outcome.
int run_point(const PointWorkerOptions& options) {
  const Scenario scenario = load_scenario(options.scenario);
  const RunOutcome outcome =
      require_backend(scenario.backend).run(scenario, training_body(scenario));
  const RunResult result = make_result(scenario, outcome);
  write_file(options.result, dump_json(to_json(summarize(scenario, outcome, result)), 2) + "\n");
  return result.exit_status();
}

}  // namespace

void add_point_worker_command(CLI::App& app, Invocation& invocation) {
  CLI::App* command = app.add_subcommand("point-worker", "One run (used by sweep and tune)");
  command->group("");  // not listed
  auto options = std::make_shared<PointWorkerOptions>();
  command->add_option("--scenario", options->scenario, "Resolved scenario")->required();
  command->add_option("--result", options->result, "File for what came of it")->required();
  command->callback(
      [options, &invocation] { invocation.action = [options] { return run_point(*options); }; });
}

}  // namespace gradsync
