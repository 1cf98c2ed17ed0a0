#pragma once

#include <string>
#include <vector>

#include "gradsync/testbed/record/rank_report.hpp"
#include "gradsync/testbed/scenario/scenario.hpp"

namespace gradsync {

/// trace.json: Chrome trace events, for ui.perfetto.dev or chrome://tracing.
///
/// A process for each rank below output.detail_ranks, with the thread "compute" (steps and in them
/// their phases) and one thread "communication" for each collective that runs at the same time, so
/// that slices of a thread nest. An arrow leads from the launch of a bucket, in backward, to its
/// all-reduce. What was still under way when the rank ended is drawn until then, with "ended":
/// false. Times are in microseconds of the rank's clock. A run that is too long for a browser keeps
/// its last steps; otherData.first_step says from where.
std::string chrome_trace(const Scenario& scenario, const std::vector<RankReport>& reports);

}  // namespace gradsync
