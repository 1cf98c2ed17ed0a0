#pragma once

#include <string>

#include "gradsync/testbed/rank/rank_body.hpp"
#include "gradsync/testbed/result/run_result.hpp"
#include "gradsync/testbed/scenario/scenario.hpp"

namespace gradsync {

/// Runs a body on a real backend: starts one process a rank (this program again, as `gradsync
/// worker`), with the store served here, waits for all of them, and merges what they report. No
/// process is left when it returns. The scenario and the ranks' reports go through `directory`,
/// which must be prepared.
///
/// `observer` gets the events that rank 0 prints on standard output, a line of JSON each; empty:
/// rank 0 does not print them. Whatever else ranks write goes to standard error, with "[rank]: "
/// before each line.
RunOutcome run_rank_processes(const Scenario& scenario, const RankBody& body,
                              const RunObserver& observer, const std::string& directory);

}  // namespace gradsync
