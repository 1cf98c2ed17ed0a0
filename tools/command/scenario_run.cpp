#include "tools/command/scenario_run.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iostream>
#include <system_error>

#include <fmt/format.h>

#include "gradsync/testbed/result/run_directory.hpp"
#include "tools/command/rank_processes.hpp"
#include "tools/command/run_printer.hpp"

namespace gradsync {

namespace fs = std::filesystem;

FinishedRun run_scenario(const Scenario& scenario, const std::string& directory, bool progress) {
  const Backend& backend = require_backend(scenario.backend);
  FinishedRun run;
  if (backend.run_all != nullptr) {
    StepPrinter printer(std::cout);
    SimulationRequest request;
    if (progress) request.on_step = std::ref(printer);
    run.outcome = backend.run_all(scenario, request);
  } else {
    std::function<void(const std::string&)> on_progress;
    if (progress) on_progress = [](const std::string& line) { std::cout << line << std::endl; };
    run.outcome = run_rank_processes(scenario, directory, on_progress);
  }
  run.result = make_result(scenario, run.outcome);
  write_run_directory(directory, scenario, run.outcome, run.result);
  return run;
}

JoinedRun join_run(const Scenario& scenario, const RankEnvironment& environment,
                   const std::string& directory, bool progress) {
  StepPrinter printer(std::cout);
  RankRequest request;
  request.environment = environment;
  request.gather_reports = true;
  if (progress && environment.rank == 0) request.on_step = std::ref(printer);

  const auto start = std::chrono::steady_clock::now();
  RankResult rank = require_backend(scenario.backend).run_rank(scenario, request);
  JoinedRun joined;
  joined.exit_status = rank.exit_status;
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
    // create_directory says whether it was us: two runs that start together get two folders.
    for (int k = 2; !fs::create_directory(directory, error) && !error; ++k) {
      directory = fmt::format("{}-{}", base, k);
    }
  }
  prepare_run_directory(directory);
  return directory;
}

}  // namespace gradsync
