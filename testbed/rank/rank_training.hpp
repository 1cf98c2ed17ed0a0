#pragma once

#include "gradsync/testbed/rank/rank_main.hpp"
#include "gradsync/testbed/record/report_keeper.hpp"

namespace gradsync {

/// Builds one rank's training from its scenario and runs it: the loop (TrainingLoop), its parts,
/// which the rank's faults may have replaced, and its observers, which record the loop and inject
/// faults. Throws the error that ends the rank; the report then says how far it got.
void train_rank(const Scenario& scenario, const RankRuntime& runtime, ReportKeeper& keeper);

}  // namespace gradsync
