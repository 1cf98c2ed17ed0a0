#pragma once

#include <list>
#include <map>
#include <vector>

#include "gradsync/testbed/record/rank_report.hpp"

namespace gradsync::diagnosis {

/// What the errors of some ranks say of others: who failed first and why, who died, and which
/// collective was issued where two did not meet. An error travels to every rank, so one file may
/// speak for a rank whose own file is missing.
///
/// Gives for each rank that `reports` name in an error a report made of that error: state, error,
/// step, and the collective. It ended before all that speak of it.
std::map<int, RankReport> read_testimonies(const std::vector<RankReport>& reports);

}  // namespace gradsync::diagnosis
