#pragma once

#include "gradsync/testbed/rank/rank_main.hpp"
#include "gradsync/testbed/record/report_keeper.hpp"

namespace gradsync {

/// Puts one rank's training together from its scenario and runs it: the loop (TrainingLoop), its
/// parts, which the rank's faults may have changed, and its observers, which record the loop and
/// let faults happen. Throws what ends the rank; the report says by then how far it came.
void train_rank(const Scenario& scenario, const RankRuntime& runtime, ReportKeeper& keeper);

}  // namespace gradsync
