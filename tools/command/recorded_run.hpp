#pragma once

#include <optional>
#include <string>

#include "gradsync/testbed/result/run_result.hpp"
#include "gradsync/testbed/scenario/scenario.hpp"
#include "tools/command/backend_registry.hpp"

namespace gradsync {

/// A finished run and its outcome.
struct FinishedRun {
  RunOutcome outcome;
  RunResult result;
};

/// Starts all ranks of `scenario` on its backend and writes the run directory (prepared by the
/// caller). With `progress`, prints the steps of rank 0 on standard output as they complete.
FinishedRun run_scenario(const Scenario& scenario, const std::string& directory, bool progress);

/// Runs this process's rank of a job that another launcher started. Rank 0 gathers the reports of
/// all ranks, has the `run` and writes the run directory; the others have only an exit status.
struct JoinedRun {
  std::optional<FinishedRun> run;
  int exit_status = 0;
};
JoinedRun join_run(const Scenario& scenario, const RankEnvironment& environment,
                   const std::string& directory, bool progress);

/// Prepares the run directory before the run, so that an unwritable folder is detected at once:
/// `requested` if given, otherwise a new folder runs/NAME-BACKEND-RANKS, with -2, -3, ... if it
/// exists. Returns its name.
std::string make_run_directory(const std::string& requested, const Scenario& scenario);

}  // namespace gradsync
