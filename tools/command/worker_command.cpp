#include <iostream>
#include <memory>

#include "gradsync/backends/store/rank_environment.hpp"
#include "gradsync/core/error.hpp"
#include "tools/command/backend_registry.hpp"
#include "tools/command/invocation.hpp"
#include "tools/command/run_printer.hpp"

namespace gradsync {
namespace {

struct WorkerOptions {
  std::string scenario;
  std::string directory;
  bool progress = false;
};

/// One rank of a run whose parent is `gradsync run`: it takes its place from the environment,
/// leaves its report in the parent's folder, and says on standard error what ended it.
int work(const WorkerOptions& options) {
  const Scenario scenario = load_scenario(options.scenario);
  const auto environment = resolve_rank_environment({});
  if (!environment) {
    throw Error(ErrorCode::kUsage, "worker is started by `gradsync run`, which sets RANK");
  }
  StepPrinter printer(std::cout);
  RankRequest request;
  request.environment = *environment;
  request.directory = options.directory;
  if (options.progress && environment->rank == 0) request.on_step = std::ref(printer);
  const RankResult result = require_backend(scenario.backend).run_rank(scenario, request);
  if (!result.report.error.empty()) std::cerr << result.report.error << std::endl;
  return result.exit_status;
}

}  // namespace

void add_worker_command(CLI::App& app, Invocation& invocation) {
  CLI::App* command = app.add_subcommand("worker", "One rank (used by run)");
  command->group("");  // not listed
  auto options = std::make_shared<WorkerOptions>();
  command->add_option("--scenario", options->scenario, "Resolved scenario")->required();
  command->add_option("--directory", options->directory, "Where to leave the report")->required();
  command->add_flag("--progress", options->progress, "Rank 0 prints its steps");
  command->callback(
      [options, &invocation] { invocation.action = [options] { return work(*options); }; });
}

}  // namespace gradsync
