#include <iostream>
#include <memory>

#include <nlohmann/json.hpp>

#include "gradsync/backends/store/rank_environment.hpp"
#include "gradsync/core/error.hpp"
#include "gradsync/core/json_text.hpp"
#include "tools/command/backend_registry.hpp"
#include "tools/command/invocation.hpp"
#include "tools/command/rank_bodies.hpp"

namespace gradsync {
namespace {

struct WorkerOptions {
  std::string scenario;
  std::string directory;
  std::string body;
  std::string arguments;
  bool progress = false;
};

/// One rank of a run started by Backend::run: takes its rank from the environment, writes its
/// report to the parent's folder, and prints the error that ended it to standard error.
int work(const WorkerOptions& options) {
  const Scenario scenario = load_scenario(options.scenario);
  const auto environment = resolve_rank_environment({});
  if (!environment) {
    throw Error(ErrorCode::kUsage, "worker is started by `gradsync run`, which sets RANK");
  }
  RankProcessOptions process;
  process.body = make_rank_body(options.body, parse_json(options.arguments), scenario);
  process.run_directory = options.directory;
  if (options.progress) {
    process.observer = [](const nlohmann::ordered_json& event) {
      std::cout << dump_json(event) << std::endl;
    };
  }
  const RankProcessResult result =
      require_backend(scenario.backend).run_rank(scenario, *environment, process);
  if (!result.report.error.empty()) std::cerr << result.report.error << std::endl;
  return result.exit_status();
}

}  // namespace

void add_worker_command(CLI::App& app, Invocation& invocation) {
  CLI::App* command = app.add_subcommand("worker", "One rank (used by run, bench and the like)");
  command->group("");  // not listed
  auto options = std::make_shared<WorkerOptions>();
  command->add_option("--scenario", options->scenario, "Resolved scenario")->required();
  command->add_option("--directory", options->directory, "Where to leave the report")->required();
  command->add_option("--body", options->body, "What the rank does")->required();
  command->add_option("--arguments", options->arguments, "Of the body, as JSON")->required();
  command->add_flag("--progress", options->progress, "Rank 0 prints its events");
  command->callback(
      [options, &invocation] { invocation.action = [options] { return work(*options); }; });
}

}  // namespace gradsync
