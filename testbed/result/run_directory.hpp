#pragma once

#include <string>
#include <vector>

#include "gradsync/testbed/result/run_result.hpp"

namespace gradsync {

/// The folder that every run writes; docs/results.md says what is in each of its files:
/// scenario.json, result.json, ranks.jsonl, steps.jsonl, events.jsonl, trace.json,
/// flight/rank-N.json. Steps, events, trace and flight records are written for ranks below
/// output.detail_ranks.

/// Creates `directory` with its parents, or empties it of an earlier run. Call it before the ranks
/// start: they may write reports of their own into ranks/. Throws Error(kUsage) if it holds
/// anything that is not of a run, or cannot be written.
void prepare_run_directory(const std::string& directory);

/// Writes all files of a run into a prepared directory (an unprepared one is prepared, but for
/// ranks/). Each file appears whole or not at all, result.json last: a directory with a result.json
/// is complete.
void write_run_directory(const std::string& directory, const Scenario& scenario,
                         const RunOutcome& outcome, const RunResult& result);

}  // namespace gradsync
