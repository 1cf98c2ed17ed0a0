#pragma once

#include <vector>

#include "gradsync/testbed/result/run_result.hpp"

namespace gradsync {

/// Checks a scenario's `expect` against its run, or against `results.size()` repetitions of it:
/// every repetition must meet each expectation, and repetitions must have equal parameter hashes.
/// Results are in the order of docs/scenarios.md; empty if nothing is expected.
///
/// `reports` are those of the first repetition (used by equal_hashes_on_all_ranks).
std::vector<ExpectationResult> check_expectations(const Scenario& scenario,
                                                  const std::vector<RunResult>& results,
                                                  const std::vector<RankReport>& reports);

bool all_met(const std::vector<ExpectationResult>& expectations);

}  // namespace gradsync
