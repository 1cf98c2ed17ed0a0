#pragma once

#include <vector>

#include "gradsync/testbed/record/rank_report.hpp"

namespace gradsync {

/// Throws the error that ended the run, in the words of the rank that had it first: an Error with
/// that rank's code, or with kTimeout if a rank has no error but did not finish (a hang). Returns
/// if all ranks finished.
void require_finished(const std::vector<RankReport>& reports);

}  // namespace gradsync
