#pragma once

#include <functional>
#include <string>
#include <vector>

#include "gradsync/testbed/result/run_result.hpp"
#include "gradsync/testbed/scenario/scenario.hpp"

namespace gradsync {

/// Runs a scenario on a real backend: starts one process a rank (this program again, as
/// `gradsync worker`), with the store served here, waits for all of them, and merges what they
/// report. No process is left when it returns. The scenario and the ranks' reports go through
/// `directory`, the run directory, which must be prepared.
///
/// With `worker` the ranks are this program with other arguments, to which `--scenario FILE
/// --directory DIRECTORY` and, where there is an `on_progress`, `--progress` are added.
///
/// `on_progress` gets the lines that rank 0 prints on standard output (the steps, see StepPrinter);
/// empty: rank 0 does not print them. Whatever ranks write to standard error goes to standard
/// error, with "[rank]: " before each line.
RunOutcome run_rank_processes(const Scenario& scenario, const std::string& directory,
                              const std::function<void(const std::string& line)>& on_progress,
                              const std::vector<std::string>& worker = {"worker"});

}  // namespace gradsync
