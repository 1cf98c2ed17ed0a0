#include <filesystem>
#include <iostream>
#include <memory>

#include <nlohmann/json.hpp>

#include "engine/core/error.hpp"
#include "engine/diagnosis/diagnosis.hpp"
#include "engine/train/run_directory.hpp"
#include "engine/train/scenario.hpp"
#include "tools/invocation.hpp"

namespace gradsync {
namespace {

namespace fs = std::filesystem;

struct DiagnoseOptions {
  std::vector<std::string> paths;
  bool json = false;
};

struct Evidence {
  std::vector<RankReport> reports;
  fs::path run_directory;
};

/// A run directory with all of its ranks, or some flight files of one run, RUN/flight/rank-N.json.
Evidence read_evidence(const std::vector<std::string>& paths) {
  if (paths.size() == 1 && fs::is_directory(paths.front())) {
    return {read_rank_reports(paths.front()), paths.front()};
  }
  Evidence evidence;
  for (const std::string& path : paths) {
    if (fs::is_directory(path)) {
      throw Error(ErrorCode::kUsage,
                  "diagnose takes one run directory, or flight files; " + path + " is a directory");
    }
    evidence.reports.push_back(read_flight_file(path));
    const fs::path run_directory = fs::absolute(path).parent_path().parent_path();
    if (!evidence.run_directory.empty() && evidence.run_directory != run_directory) {
      throw Error(ErrorCode::kUsage,
                  "these flight files are of different runs: " + evidence.run_directory.string() +
                      " and " + run_directory.string());
    }
    evidence.run_directory = run_directory;
  }
  return evidence;
}

int diagnose_paths(const DiagnoseOptions& options) {
  const Evidence evidence = read_evidence(options.paths);
  const Scenario scenario = load_scenario((evidence.run_directory / "scenario.json").string());
  const auto diagnosis = diagnose(evidence.reports, scenario);
  if (options.json) {
    std::cout << (diagnosis ? to_json(*diagnosis) : nlohmann::ordered_json()).dump(2) << '\n';
  } else if (diagnosis) {
    std::cout << format_text(*diagnosis);
  } else {
    std::cout << "Every rank finished; there is nothing to diagnose.\n";
  }
  return 0;
}

}  // namespace

void add_diagnose_command(CLI::App& app, Invocation& invocation) {
  CLI::App* command = app.add_subcommand("diagnose", "Say why a run did not complete");
  auto options = std::make_shared<DiagnoseOptions>();
  command->add_option("PATH", options->paths, "A run directory, or flight files of one run")
      ->required();
  command->add_flag("--json", options->json, "Print the diagnosis as JSON (null if there is none)");
  command->callback([options, &invocation] {
    invocation.action = [options] { return diagnose_paths(*options); };
  });
}

}  // namespace gradsync
