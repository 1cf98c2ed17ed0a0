#include "gradsync/testbed/result/run_records.hpp"

#include <algorithm>
#include <filesystem>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gradsync/core/error.hpp"
#include "gradsync/testbed/record/files.hpp"
#include "gradsync/testbed/record/json_fields.hpp"
#include "gradsync/testbed/record/json_lines.hpp"
#include "gradsync/testbed/record/rank_report_json.hpp"
#include "gradsync/testbed/record/step_json.hpp"
#include "gradsync/testbed/result/events.hpp"
#include "gradsync/testbed/result/foreign_file.hpp"

namespace gradsync {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

RankReport read_flight_file(const fs::path& file) {
  const std::string text = read_file(file);
  if (const auto foreign = describe_foreign_file(text)) {
    throw Error(ErrorCode::kUsage,
                fmt::format("{} is {}; diagnose reads run directories of gradsync, and their "
                            "flight/rank-N.json",
                            file.string(), *foreign));
  }
  return rank_report_from_text(text, file.string());
}

/// The run's scenario. If it is missing or damaged, records the gap and returns defaults with the
/// number of ranks.
Scenario scenario_of(const fs::path& folder, int world_size, EvidenceGaps& gaps) {
  const fs::path file = folder / "scenario.json";
  Scenario scenario;
  scenario.ranks = world_size;
  try {
    if (fs::exists(file)) return load_scenario(file.string());
    gaps.files.push_back("scenario.json is missing: how the data were dealt is not known");
  } catch (const Error& error) {
    gaps.files.push_back(error.what());
  }
  gaps.scenario = true;
  return scenario;
}

/// Reads a run directory file by file and records what is missing.
class Reader {
 public:
  explicit Reader(fs::path folder) : folder_(std::move(folder)) {}

  RunRecords read() {
    read_summaries();
    read_flights();
    if (reports_.empty()) fail();
    read_scenario();
    read_steps();
    read_events_of_full_rings();
    RunRecords records;
    for (auto& [rank, report] : reports_) records.reports.push_back(std::move(report));
    records.scenario = std::move(scenario_);
    records.gaps = std::move(gaps_);
    return records;
  }

 private:
  /// Calls `use` for each complete line; returns false if the file is missing or a line is
  /// incomplete.
  template <typename Use>
  bool lines_of(const char* name, const Use& use) {
    if (!fs::exists(folder_ / name)) {
      gaps_.files.push_back(fmt::format("{} is missing", name));
      return false;
    }
    try {
      for_each_json_line((folder_ / name).string(), use);
      return true;
    } catch (const Error& error) {
      gaps_.files.push_back(
          fmt::format("{} is damaged, and what follows there is missing: {}", name, error.what()));
      return false;
    }
  }

  void read_summaries() {
    lines_of("ranks.jsonl", [&](const Json& line, const std::string& place) {
      RankReport report = rank_report_from_json(line, place);
      reports_.insert_or_assign(report.rank, std::move(report));
    });
  }

  void read_flights() {
    if (!fs::is_directory(folder_ / "flight")) return;
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(folder_ / "flight")) {
      if (entry.path().extension() == ".json") files.push_back(entry.path());
    }
    std::ranges::sort(files);
    for (const fs::path& file : files) {
      try {
        RankReport report = read_flight_file(file);
        in_detail_.push_back(report.rank);
        reports_.insert_or_assign(report.rank, std::move(report));
      } catch (const Error& error) {
        gaps_.files.push_back(fmt::format("flight/{} is damaged, and what it held is missing: {}",
                                          file.filename().string(), error.what()));
      }
    }
  }

  void read_scenario() {
    scenario_ = scenario_of(folder_, reports_.begin()->second.world_size, gaps_);
    for (const auto& [rank, report] : reports_) {
      const bool in_detail = std::ranges::find(in_detail_, rank) != in_detail_.end();
      const bool left_something = report.parameter_tensors > 0;
      if (!in_detail && left_something && rank < scenario_.output.detail_ranks) {
        gaps_.summaries.push_back(rank);
      }
    }
  }

  void read_steps() {
    const bool whole = lines_of("steps.jsonl", [&](const Json& line, const std::string& place) {
      int rank = -1;
      JsonFields(line, place).get("rank", rank);
      const auto report = reports_.find(rank);
      if (report != reports_.end()) report->second.steps.push_back(step_from_json(line, place));
    });
    gaps_.steps = !whole;
  }

  /// events.jsonl holds every collective of the run. It is large, and adds something only if a ring
  /// has overwritten records.
  void read_events_of_full_rings() {
    const bool full = std::ranges::any_of(reports_, [&](const auto& of_rank) {
      const RankReport& report = of_rank.second;
      const bool summary = std::ranges::find(gaps_.summaries, report.rank) != gaps_.summaries.end();
      return summary || (!report.flight.empty() && report.flight.front().sequence > 0);
    });
    if (!full || !fs::exists(folder_ / "events.jsonl")) return;
    try {
      for (auto& [rank, records] : read_events(folder_.string())) {
        const auto report = reports_.find(rank);
        if (report != reports_.end()) report->second.collectives = std::move(records);
      }
    } catch (const Error& error) {
      gaps_.files.push_back(
          fmt::format("events.jsonl is damaged, and what it held is missing: {}", error.what()));
    }
  }

  [[noreturn]] void fail() const {
    std::string found;
    if (fs::is_directory(folder_)) {
      for (const auto& entry : fs::directory_iterator(folder_)) {
        if (!found.empty() || !entry.is_regular_file()) continue;
        if (const auto foreign = describe_foreign_file(read_file(entry.path()))) {
          found = fmt::format("; {} is {}", entry.path().filename().string(), *foreign);
        }
      }
    }
    throw Error(
        ErrorCode::kUsage,
        fmt::format("{} holds no record of a rank: neither ranks.jsonl nor "
                    "flight/rank-N.json can be read{}{}",
                    folder_.string(), gaps_.files.empty() ? "" : ": " + gaps_.files.back(), found));
  }

  fs::path folder_;
  std::map<int, RankReport> reports_;
  std::vector<int> in_detail_;
  Scenario scenario_;
  EvidenceGaps gaps_;
};

}  // namespace

RunRecords read_run_records(const std::string& directory) {
  return Reader(directory).read();
}

RunRecords read_flight_files(const std::vector<std::string>& files) {
  RunRecords records;
  fs::path run_directory;
  for (const std::string& file : files) {
    records.reports.push_back(read_flight_file(file));
    const fs::path of_file = fs::absolute(file).parent_path().parent_path();
    if (!run_directory.empty() && run_directory != of_file) {
      throw Error(ErrorCode::kUsage, "these flight files belong to different runs: " +
                                         run_directory.string() + " and " + of_file.string());
    }
    run_directory = of_file;
  }
  records.gaps.steps = true;
  records.gaps.files.push_back("only flight files are given: steps.jsonl is missing");
  records.scenario = scenario_of(run_directory, records.reports.front().world_size, records.gaps);
  return records;
}

}  // namespace gradsync
