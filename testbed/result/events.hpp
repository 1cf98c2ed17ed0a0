#pragma once

#include <map>
#include <string>
#include <vector>

#include "gradsync/testbed/record/rank_report.hpp"

namespace gradsync {

/// events.jsonl: every collective of every rank below `detail_ranks`, ordered by rank and then by
/// issue. The first line is the table of parameter lists that the others refer to.
std::string event_lines(const std::vector<RankReport>& reports, std::int64_t detail_ranks);

/// The collectives of events.jsonl by rank, in order. Throws Error(kUsage) naming file and line.
std::map<int, std::vector<CollectiveRecord>> read_events(const std::string& directory);

}  // namespace gradsync
