#pragma once

#include <string>
#include <vector>

#include "gradsync/testbed/record/evidence_gaps.hpp"
#include "gradsync/testbed/record/rank_report.hpp"
#include "gradsync/testbed/scenario/scenario.hpp"

namespace gradsync {

/// What can be read back of a run: enough for `diagnose`.
struct RunRecords {
  std::vector<RankReport> reports;  ///< by rank, of those that left something
  Scenario scenario;
  EvidenceGaps gaps;
};

/// All that a run directory holds. A file that is missing, or cut off in the middle, is a gap and
/// no error: what is there is read. Throws Error(kUsage) if nothing of any rank is there; where the
/// directory holds something of another tool, the error says what it is.
RunRecords read_run_records(const std::string& directory);

/// Some flight/rank-N.json of one run, with the run's scenario.json where that is still there.
/// Throws Error(kUsage), naming the file, if one is damaged, or of another tool.
RunRecords read_flight_files(const std::vector<std::string>& files);

}  // namespace gradsync
