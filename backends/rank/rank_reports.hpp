#pragma once

#include <string>
#include <vector>

#include "gradsync/backends/store/store.hpp"
#include "gradsync/testbed/record/rank_report.hpp"

namespace gradsync {

/// The two ways in which the reports of a run's ranks come together: as files where one parent
/// started the ranks, through the store under a foreign launcher (no shared folder is needed).

/// Writes `run_directory`/ranks/rank-N.json, whole or not at all (by rename).
void write_report_file(const std::string& run_directory, const RankReport& report);
/// The same into ranks/rank-N.dump.json: how the rank stands while it runs.
void write_dump_file(const std::string& run_directory, const RankReport& report);
/// Reads the files of all ranks, by rank. A rank without a file (it was killed) has state kRunning
/// and nothing else.
std::vector<RankReport> read_report_files(const std::string& run_directory, int world_size);

/// Puts this rank's report into the store.
void publish_report(Store& store, const RankReport& report, Seconds timeout);
/// On one rank: the reports of all, by rank; those that have not come when `timeout` ends have
/// state kRunning and nothing else.
std::vector<RankReport> gather_reports(Store& store, int world_size, Seconds timeout);

}  // namespace gradsync
