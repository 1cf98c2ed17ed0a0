#pragma once

#include <string>
#include <vector>

#include "gradsync/backends/store/store.hpp"
#include "gradsync/testbed/record/rank_report.hpp"

namespace gradsync {

/// The two ways to collect the reports of a run's ranks: as files if one parent started the ranks,
/// or through the store under a foreign launcher (needs no shared folder).

/// Writes `run_directory`/ranks/rank-N.json atomically (by rename).
void write_report_file(const std::string& run_directory, const RankReport& report);
/// Same, to ranks/rank-N.dump.json: a snapshot of a running rank.
void write_dump_file(const std::string& run_directory, const RankReport& report);
/// Reads the files of all ranks, by rank. A rank without a file (it was killed) gets state kRunning
/// and nothing else.
std::vector<RankReport> read_report_files(const std::string& run_directory, int world_size);

/// The reports of a job of which only `report` is known.
std::vector<RankReport> only_report(const RankReport& report, int world_size);

/// Puts this rank's report in the store.
void publish_report(Store& store, const RankReport& report, Seconds timeout);
/// On one rank: the reports of all ranks, by rank. Ranks whose report is missing at the `timeout`
/// get state kRunning and nothing else.
std::vector<RankReport> gather_reports(Store& store, int world_size, Seconds timeout);

}  // namespace gradsync
