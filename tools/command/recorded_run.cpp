#include "tools/command/recorded_run.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iostream>
#include <system_error>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gradsync/testbed/record/step_json.hpp"
#include "gradsync/testbed/result/run_directory.hpp"
#include "tools/command/run_printer.hpp"

namespace gradsync {

namespace fs = std::filesystem;

namespace {

/// An observer of training.
RunObserver print_steps(std::ostream& stream) {
  return [printer = StepPrinter(stream)](const nlohmann::ordered_json& event) mutable {
    printer(step_from_json(event, "a step"));
  };
}

}  // namespace

FinishedRun run_scenario(const Scenario& scenario, const std::string& directory, bool progress) {
  FinishedRun run;
  run.outcome = require_backend(scenario.backend)
                    .run(scenario, training_body(scenario),
                         progress ? print_steps(std::cout) : RunObserver(), directory);
  run.result = make_result(scenario, run.outcome);
  write_run_directory(directory, scenario, run.outcome, run.result);
  return run;
}

JoinedRun join_run(const Scenario& scenario, const RankEnvironment& environment,
                   const std::string& directory, bool progress) {
  RankProcessOptions options;
  options.body = training_body(scenario);
  options.gather_reports = true;
  if (progress) options.observer = print_steps(std::cout);

  const auto start = std::chrono::steady_clock::now();
  RankProcessResult rank =
      require_backend(scenario.backend).run_rank(scenario, environment, options);
  JoinedRun joined;
  joined.exit_status = rank.exit_status();
  if (!rank.report.error.empty()) std::cerr << rank.report.error << std::endl;
  if (environment.rank != 0) return joined;

  FinishedRun run;
  run.outcome.wall = std::chrono::steady_clock::now() - start;
  run.outcome.reports = std::move(rank.all_reports);
  run.outcome.notes.push_back("ranks started by " + environment.source);
  for (const RankReport& report : run.outcome.reports) {
    run.outcome.peak_rss_bytes = std::max(run.outcome.peak_rss_bytes, report.peak_rss_bytes);
  }
  run.result = make_result(scenario, run.outcome);
  write_run_directory(directory, scenario, run.outcome, run.result);
  joined.exit_status = run.result.exit_status();
  joined.run = std::move(run);
  return joined;
}

std::string make_run_directory(const std::string& requested, const Scenario& scenario) {
  std::string directory = requested;
  if (requested.empty()) {
    std::error_code error;
    fs::create_directories("runs", error);
    const std::string base =
        fmt::format("runs/{}-{}-{}", scenario.name, scenario.backend, scenario.ranks);
    directory = base;
    // create_directory reports whether it created the folder, so two runs that start together get
    // two folders.
    for (int k = 2; !fs::create_directory(directory, error) && !error; ++k) {
      directory = fmt::format("{}-{}", base, k);
    }
  }
  prepare_run_directory(directory);
  return directory;
}

}  // namespace gradsync
