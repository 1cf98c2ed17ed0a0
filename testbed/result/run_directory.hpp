#pragma once

#include <string>
#include <vector>

#include "gradsync/testbed/result/run_result.hpp"

namespace gradsync {

/// The folder that every run writes; docs/results.md describes its files: scenario.json,
/// result.json, ranks.jsonl, steps.jsonl, events.jsonl, trace.json, flight/rank-N.json. Steps,
/// events, trace and flight records are written for ranks below output.detail_ranks.

/// Creates `directory` with its parents, or removes the files of an earlier run from it. Call it
/// before the ranks start, because they may write their own reports to ranks/. Throws Error(kUsage)
/// if it contains anything that is not part of a run, or cannot be written.
void prepare_run_directory(const std::string& directory);

/// Writes all files of a run to a prepared directory (prepares it if necessary, but keeps ranks/).
/// Each file is written atomically, result.json last: a directory with a result.json is complete.
void write_run_directory(const std::string& directory, const Scenario& scenario,
                         const RunOutcome& outcome, const RunResult& result);

}  // namespace gradsync
