#pragma once

#include <list>
#include <map>
#include <vector>

#include "gradsync/testbed/record/rank_report.hpp"

namespace gradsync::diagnosis {

/// Extracts what the errors of some ranks say about others: who failed first and why, who died, and
/// which collectives were mismatched. An error propagates to every rank, so one file can stand in
/// for a rank whose own file is missing.
///
/// For each rank named in an error, returns a report derived from that error: state, error, step,
/// and the collective. Its end time precedes those of all ranks that mention it.
std::map<int, RankReport> read_testimonies(const std::vector<RankReport>& reports);

}  // namespace gradsync::diagnosis
