#include "gradsync/testbed/result/run_directory.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <string_view>
#include <system_error>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gradsync/core/error.hpp"
#include "gradsync/core/json_text.hpp"
#include "gradsync/testbed/record/files.hpp"
#include "gradsync/testbed/record/json_lines.hpp"
#include "gradsync/testbed/record/rank_report_json.hpp"
#include "gradsync/testbed/record/step_json.hpp"
#include "gradsync/testbed/result/events.hpp"
#include "gradsync/testbed/result/trace.hpp"

namespace gradsync {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 9> kEntries = {
    "scenario.json", "result.json", "ranks.jsonl", "steps.jsonl", "events.jsonl",
    "trace.json",    "flight",      "ranks",       "report.html"};

bool is_of_a_run(const std::string& name) {
  std::string_view plain = name;
  if (plain.ends_with(".tmp")) plain.remove_suffix(4);  // left by an interrupted run
  return std::find(kEntries.begin(), kEntries.end(), plain) != kEntries.end();
}

/// Removes the files of an earlier run. `keep_rank_reports`: the ranks of this run have already
/// written theirs.
void clear(const std::string& directory, bool keep_rank_reports) {
  try {
    if (fs::exists(directory) && !fs::is_directory(directory)) {
      throw Error(ErrorCode::kUsage, fmt::format("{} is not a directory", directory));
    }
    fs::create_directories(directory);
    for (const fs::directory_entry& entry : fs::directory_iterator(directory)) {
      if (is_of_a_run(entry.path().filename().string())) continue;
      throw Error(
          ErrorCode::kUsage,
          fmt::format("{} holds {}, which is not part of a run: name an empty or a new directory",
                      directory, entry.path().filename().string()));
    }
    // result.json first: without it, the remains of two runs cannot be mistaken for one.
    fs::remove(fs::path(directory) / "result.json");
    for (const std::string_view entry : kEntries) {
      if (entry == "ranks" && keep_rank_reports) continue;
      fs::remove_all(fs::path(directory) / entry);
    }
    fs::create_directories(fs::path(directory) / "flight");
  } catch (const fs::filesystem_error& error) {
    throw Error(ErrorCode::kUsage, fmt::format("cannot write the run directory {}: {}", directory,
                                               error.code().message()));
  }
}

std::string rank_lines(const std::vector<RankReport>& reports) {
  std::string lines;
  for (const RankReport& report : reports) {
    lines += dump_json(to_json(report, ReportDetail::kSummary)) + "\n";
  }
  return lines;
}

std::string step_lines(const std::vector<RankReport>& reports, std::int64_t detail_ranks) {
  std::string lines;
  for (const RankReport& report : reports) {
    if (report.rank >= detail_ranks) continue;
    for (const StepRecord& step : report.steps) {
      lines += json_line(report.rank, to_json(step));
    }
  }
  return lines;
}

fs::path flight_file(const std::string& directory, int rank) {
  return fs::path(directory) / "flight" / fmt::format("rank-{}.json", rank);
}

}  // namespace

void prepare_run_directory(const std::string& directory) {
  clear(directory, /*keep_rank_reports=*/false);
}

void write_run_directory(const std::string& directory, const Scenario& scenario,
                         const RunOutcome& outcome, const RunResult& result) {
  clear(directory, /*keep_rank_reports=*/true);
  const fs::path folder(directory);
  const std::int64_t detail = scenario.output.detail_ranks;
  write_file(folder / "scenario.json", dump_json(to_json(scenario), 2) + "\n");
  write_file(folder / "ranks.jsonl", rank_lines(outcome.reports));
  write_file(folder / "steps.jsonl", step_lines(outcome.reports, detail));
  write_file(folder / "events.jsonl", event_lines(outcome.reports, detail));
  write_file(folder / "trace.json", chrome_trace(scenario, outcome.reports));
  for (const RankReport& report : outcome.reports) {
    if (report.rank >= detail) continue;
    write_file(flight_file(directory, report.rank),
               dump_json(to_json(report, ReportDetail::kFlight), 1) + "\n");
  }
  write_file(folder / "result.json", dump_json(to_json(result), 2) + "\n");
}

}  // namespace gradsync
