#pragma once

#include <optional>
#include <string>

#include "gradsync/testbed/result/run_result.hpp"
#include "gradsync/testbed/scenario/scenario.hpp"
#include "tools/command/backend_registry.hpp"

namespace gradsync {

/// A run and what came of it.
struct FinishedRun {
  RunOutcome outcome;
  RunResult result;
};

/// Runs `scenario` on its backend with all of its ranks started from here, and writes the run
/// directory (prepared by the caller). With `progress` the steps of rank 0 are printed on standard
/// output as they happen.
FinishedRun run_scenario(const Scenario& scenario, const std::string& directory, bool progress);

/// Runs this process's rank of a job that another launcher started. Rank 0 collects the reports of
/// all, has the `run` and writes the run directory; the others have an exit status only.
struct JoinedRun {
  std::optional<FinishedRun> run;
  int exit_status = 0;
};
JoinedRun join_run(const Scenario& scenario, const RankEnvironment& environment,
                   const std::string& directory, bool progress);

/// Prepares the run directory before the run, so that what cannot be written is known at once:
/// `requested` if given, else a new folder runs/NAME-BACKEND-RANKS, with -2, -3, ... where that
/// exists. Returns its name.
std::string make_run_directory(const std::string& requested, const Scenario& scenario);

}  // namespace gradsync
