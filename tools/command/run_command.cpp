#include <iostream>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gradsync/core/error.hpp"
#include "gradsync/core/json_text.hpp"
#include "tools/command/invocation.hpp"
#include "tools/command/recorded_run.hpp"
#include "tools/command/run_printer.hpp"
#include "tools/command/scenario_options.hpp"
#include "tools/command/shipped_files.hpp"

namespace gradsync {
namespace {

struct RunOptions {
  std::string file;
  ScenarioOptions scenario;
  std::string out;
  bool json = false;
  bool explain = false;
};

/// The scenario, adapted to a job of `world_size` ranks that another launcher started.
Scenario load_for_job(const RunOptions& options, const RankEnvironment& environment) {
  ScenarioOptions scenario = options.scenario;
  if (scenario.ranks.value_or(environment.world_size) != environment.world_size) {
    throw Error(ErrorCode::kUsage,
                fmt::format("--ranks {} contradicts the {} ranks of {}; leave --ranks out",
                            *scenario.ranks, environment.world_size, environment.source));
  }
  scenario.ranks = environment.world_size;
  return load_scenario(options.file, scenario);
}

void print(const RunOptions& options, const FinishedRun& run, const std::string& directory) {
  if (options.json) {
    std::cout << dump_json(to_json(run.result), 2) << '\n';
  } else {
    print_result(std::cout, run.result, directory, Style::for_standard_output());
  }
  // With --json, standard output contains only the result.
  std::ostream& stream = options.json ? std::cerr : std::cout;
  if (!options.explain) return;
  for (const std::string& text : run.outcome.explanations) stream << '\n' << text;
  if (run.outcome.explanations.empty()) {
    stream << "\nThere is nothing to explain: only simulated NCCL chooses among algorithms.\n";
  }
}

int start_all_ranks(const RunOptions& options, const Scenario& scenario) {
  const std::string directory = make_run_directory(options.out, scenario);
  if (!options.json) print_header(std::cout, scenario, directory);
  const FinishedRun run = run_scenario(scenario, directory, !options.json);
  print(options, run, directory);
  return run.result.exit_status();
}

int join_as_one_rank(const RunOptions& options, const RankEnvironment& environment) {
  const Scenario scenario = load_for_job(options, environment);
  const std::string directory =
      environment.rank == 0 ? make_run_directory(options.out, scenario) : "";
  if (!options.json && environment.rank == 0) print_header(std::cout, scenario, directory);
  const JoinedRun joined = join_run(scenario, environment, directory, !options.json);
  if (joined.run) print(options, *joined.run, directory);
  return joined.exit_status;
}

int run(const RunOptions& options) {
  try {
    const Scenario scenario = load_scenario(options.file, options.scenario);
    const Backend& backend = require_backend(scenario.backend);
    if (!backend.descriptor.is_simulated) {  // a simulation is one process, whoever started it
      if (const auto environment = resolve_rank_environment({})) {
        return join_as_one_rank(options, *environment);
      }
    }
    return start_all_ranks(options, scenario);
  } catch (const ConfigError& error) {
    if (options.json) {  // "invalid" is an outcome, too
      RunResult result;
      result.scenario = options.file;
      result.outcome = Outcome::kInvalid;
      result.notes.emplace_back(error.what());
      std::cout << dump_json(to_json(result), 2) << '\n';
    }
    throw;
  }
}

}  // namespace

void add_run_command(CLI::App& app, Invocation& invocation) {
  CLI::App* command = app.add_subcommand("run", "Run a scenario");
  command->footer(
      "Starts the ranks itself. Under torchrun, mpirun or srun it joins the job as one rank.\nThe "
      "exit status is that of the outcome, whatever the scenario expects: 0 completed, 2 usage "
      "or\ninvalid scenario, 3 backend not available, 4 hang, 5 desync, 6 failed. `gradsync check` "
      "compares\nthe outcome with `expect`.");
  auto options = std::make_shared<RunOptions>();
  command->add_option("SCENARIO", options->file, kScenarioHelp)
      ->required()
      ->transform(shipped_path);
  add_scenario_options(*command, options->scenario);
  command
      ->add_option("--out", options->out,
                   "Where to write the run directory (default: a new folder in runs/)")
      ->type_name("DIR");
  command->add_flag("--json", options->json,
                    "Print result.json, and nothing else, on standard output");
  command->add_flag("--explain", options->explain,
                    "Print why each size of collective got its algorithm (simulated NCCL only)");
  command->callback(
      [options, &invocation] { invocation.action = [options] { return run(*options); }; });
}

}  // namespace gradsync
