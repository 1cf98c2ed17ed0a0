#pragma once

#include <string>

#include "engine/train/run_result.hpp"

namespace gradsync {

/// Writes the run directory: scenario.json, result.json, ranks.jsonl, steps.jsonl, events.jsonl,
/// trace.json and flight/rank-N.json (docs/results.md says what is in each). Steps, events, trace
/// and flight records are written for ranks below output.detail_ranks.
///
/// Creates `directory` with its parents. Replaces an earlier run in it; throws Error(kUsage) if it
/// holds anything else. Each file appears whole or not at all (written beside it, then renamed),
/// result.json last: a directory with a result.json is complete.
void write_run_directory(const std::string& directory, const Scenario& scenario,
                         const RunOutcome& outcome, const RunResult& result);

/// The ranks' reports as far as a run directory keeps them: all of ranks.jsonl, with the flight
/// records where they were written. Enough for `diagnose`. Throws Error(kUsage), naming the file,
/// if there are none.
std::vector<RankReport> read_rank_reports(const std::string& directory);

/// One flight/rank-N.json.
RankReport read_flight_file(const std::string& file);

}  // namespace gradsync
