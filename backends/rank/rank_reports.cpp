#include "gradsync/backends/rank/rank_reports.hpp"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gradsync/testbed/record/rank_report_json.hpp"

namespace gradsync {
namespace {

namespace fs = std::filesystem;

fs::path report_file(const std::string& run_directory, int rank) {
  return fs::path(run_directory) / "ranks" / fmt::format("rank-{}.json", rank);
}

std::string report_key(int rank) {
  return fmt::format("report/{}", rank);
}

RankReport no_report(int rank) {
  RankReport report;
  report.rank = rank;
  report.state = RankState::kRunning;
  return report;
}

std::string to_text(const RankReport& report) {
  return to_json(report).dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace

namespace {

void write_whole(const fs::path& file, const RankReport& report) {
  fs::create_directories(file.parent_path());
  const fs::path unfinished = file.string() + ".tmp";
  {
    std::ofstream out(unfinished, std::ios::binary | std::ios::trunc);
    out << to_text(report) << '\n';
    out.close();
    if (!out) {
      throw Error(ErrorCode::kInternal, fmt::format("rank {}: cannot write {}; is the disk full?",
                                                    report.rank, unfinished.string()));
    }
  }
  fs::rename(unfinished, file);
}

}  // namespace

void write_report_file(const std::string& run_directory, const RankReport& report) {
  write_whole(report_file(run_directory, report.rank), report);
}

void write_dump_file(const std::string& run_directory, const RankReport& report) {
  write_whole(report_file(run_directory, report.rank).replace_extension(".dump.json"), report);
}

std::vector<RankReport> read_report_files(const std::string& run_directory, int world_size) {
  std::vector<RankReport> reports;
  for (int rank = 0; rank < world_size; ++rank) {
    const fs::path file = report_file(run_directory, rank);
    std::ifstream in(file, std::ios::binary);
    if (!in) {
      reports.push_back(no_report(rank));
      continue;
    }
    std::ostringstream text;
    text << in.rdbuf();
    reports.push_back(rank_report_from_text(text.str(), file.string()));
  }
  return reports;
}

std::vector<RankReport> only_report(const RankReport& report, int world_size) {
  std::vector<RankReport> reports;
  for (int rank = 0; rank < world_size; ++rank) {
    reports.push_back(rank == report.rank ? report : no_report(rank));
  }
  return reports;
}

void publish_report(Store& store, const RankReport& report, Seconds timeout) {
  set_large(store, report_key(report.rank), to_text(report), timeout);
}

std::vector<RankReport> gather_reports(Store& store, int world_size, Seconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  std::vector<RankReport> reports;
  for (int rank = 0; rank < world_size; ++rank) {
    try {
      const std::string key = report_key(rank);
      const Seconds left = deadline - std::chrono::steady_clock::now();
      reports.push_back(rank_report_from_text(get_large(store, key, left), "store key " + key));
    } catch (const StoreTimeout&) {
      reports.push_back(no_report(rank));
    }
  }
  return reports;
}

}  // namespace gradsync
