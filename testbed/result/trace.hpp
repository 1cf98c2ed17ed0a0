#pragma once

#include <string>
#include <vector>

#include "gradsync/testbed/record/rank_report.hpp"
#include "gradsync/testbed/scenario/scenario.hpp"

namespace gradsync {

/// trace.json: Chrome trace events, for ui.perfetto.dev or chrome://tracing.
///
/// One process per rank below output.detail_ranks, with a thread "compute" (steps, and in them
/// their phases) and as many threads "communication" as there are concurrent collectives, so that
/// the slices of a thread nest. A flow arrow connects the launch of a bucket, in backward, to its
/// all-reduce. Slices still open when the rank ended are drawn up to that time, with "ended":
/// false. Times are in microseconds on the rank's clock. A run that is too long for a browser keeps
/// its last steps; otherData.first_step is the first one drawn.
std::string chrome_trace(const Scenario& scenario, const std::vector<RankReport>& reports);

}  // namespace gradsync
