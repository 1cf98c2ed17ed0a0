#include "tools/command/rank_processes.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iostream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gradsync/backends/launch/launcher.hpp"
#include "gradsync/backends/rank/rank_reports.hpp"
#include "gradsync/core/error.hpp"
#include "gradsync/core/json_text.hpp"

namespace gradsync {
namespace {

namespace fs = std::filesystem;

/// After a failure the store notifies all ranks at once; they only need time to write their
/// reports.
constexpr Seconds kFailureGrace{1};

/// Passes a line of a rank's standard output to the observer if it is an event.
bool tell(const RunObserver& observer, const std::string& line) {
  if (!observer) return false;
  const auto event = try_parse_json(line);
  if (!event.is_object()) return false;  // printed by a library
  observer(event);
  return true;
}

LaunchOptions launch_options(const Scenario& scenario, const RankBody& body,
                             const RunObserver& observer, const fs::path& directory) {
  LaunchOptions options;
  options.nproc_per_node = static_cast<int>(scenario.ranks);
  options.standalone = true;
  options.failure_grace = kFailureGrace;
  options.program = fs::read_symlink("/proc/self/exe");
  options.args = {"worker",      "--scenario",  directory / "scenario.json",
                  "--directory", directory,     "--body",
                  body.name,     "--arguments", dump_json(body.arguments)};
  if (observer) options.args.emplace_back("--progress");
  options.on_line = [&observer](int rank, bool is_stderr, const std::string& line) {
    if (!is_stderr && rank == 0 && tell(observer, line)) return;
    std::cerr << fmt::format("[{}]: {}\n", rank, line);
  };
  return options;
}

/// Adds what only the parent knows: how each process ended.
void add_exits(const LaunchResult& launched, std::vector<RankReport>& reports) {
  for (const RankExit& exit : launched.ranks) {
    RankReport& report = reports.at(static_cast<std::size_t>(exit.rank));
    report.exit_code = exit.signal == 0 ? std::optional(exit.exit_code) : std::nullopt;
    report.exit_signal = exit.signal != 0 ? std::optional(exit.signal) : std::nullopt;
    // Except if the whole run was asked to end: then the signal is what ended the rank.
    const bool is_victim = exit.ended_by_launcher && launched.forwarded_signal == 0;
    if (is_victim && report.state == RankState::kRunning && !report.error_code) {
      report.error_code = ErrorCode::kPeerFailed;
      report.error =
          fmt::format("rank {} was ended by its launcher ({})", exit.rank, exit.describe());
    }
  }
}

}  // namespace

RunOutcome run_rank_processes(const Scenario& scenario, const RankBody& body,
                              const RunObserver& observer, const std::string& directory) {
  // The ranks read the scenario as resolved here, and write their reports beside it.
  std::ofstream(fs::path(directory) / "scenario.json") << dump_json(to_json(scenario), 2) << '\n';

  const auto start = std::chrono::steady_clock::now();
  const LaunchResult launched = launch(launch_options(scenario, body, observer, directory));

  RunOutcome outcome;
  outcome.wall = std::chrono::steady_clock::now() - start;
  outcome.reports = read_report_files(directory, static_cast<int>(scenario.ranks));
  add_exits(launched, outcome.reports);
  for (const RankReport& report : outcome.reports) {
    outcome.peak_rss_bytes = std::max(outcome.peak_rss_bytes, report.peak_rss_bytes);
  }
  // The first process to exit with an error is rarely the culprit of a hang. It is mentioned only
  // if the rank itself could not report how it ended.
  const auto& first = launched.first_failure;
  const bool said_so =
      first && !outcome.reports.at(static_cast<std::size_t>(first->rank)).error.empty();
  if (!launched.ok() && !said_so) outcome.notes.push_back(launched.describe());
  return outcome;
}

}  // namespace gradsync
