#pragma once

#include <string>
#include <vector>

#include "gradsync/testbed/record/evidence_gaps.hpp"
#include "gradsync/testbed/record/rank_report.hpp"
#include "gradsync/testbed/scenario/scenario.hpp"

namespace gradsync {

/// What can be read back from a run: the input of `diagnose`.
struct RunRecords {
  std::vector<RankReport> reports;  ///< by rank; only ranks that left something
  Scenario scenario;
  EvidenceGaps gaps;
};

/// Reads everything a run directory holds. A missing or truncated file is recorded as a gap, not an
/// error. Throws Error(kUsage) if there is nothing of any rank; if the directory holds files of
/// another tool, the error says which.
RunRecords read_run_records(const std::string& directory);

/// Reads some flight/rank-N.json files of one run, with the run's scenario.json if it still exists.
/// Throws Error(kUsage), naming the file, if one is damaged or from another tool.
RunRecords read_flight_files(const std::vector<std::string>& files);

}  // namespace gradsync
