#pragma once

#include <string>

#include "gradsync/testbed/rank/rank_body.hpp"
#include "gradsync/testbed/result/run_result.hpp"
#include "gradsync/testbed/scenario/scenario.hpp"

namespace gradsync {

/// Runs a body on a real backend: hosts the store, starts one process per rank (this program again,
/// as `gradsync worker`), waits for all of them, and merges their reports. No process is left when
/// it returns. The scenario and the ranks' reports are passed through `directory`, which must be
/// prepared.
///
/// `observer` receives the events that rank 0 prints on standard output, one JSON line each; if it
/// is empty, rank 0 does not print them. All other output of the ranks goes to standard error, with
/// "[rank]: " before each line.
RunOutcome run_rank_processes(const Scenario& scenario, const RankBody& body,
                              const RunObserver& observer, const std::string& directory);

}  // namespace gradsync
