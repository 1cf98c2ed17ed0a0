#pragma once

#include <vector>

#include "gradsync/testbed/result/run_result.hpp"

namespace gradsync {

/// Holds a scenario's `expect` against its run, or against `results.size()` repetitions of it:
/// every repetition must meet each line, and with more than one their parameter hashes must be
/// equal. In the order of docs/scenarios.md; empty if nothing is expected.
///
/// `reports` are those of the first repetition (equal_hashes_on_all_ranks looks at them).
std::vector<ExpectationResult> check_expectations(const Scenario& scenario,
                                                  const std::vector<RunResult>& results,
                                                  const std::vector<RankReport>& reports);

bool all_met(const std::vector<ExpectationResult>& expectations);

}  // namespace gradsync
