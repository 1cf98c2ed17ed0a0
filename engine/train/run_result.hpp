#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "engine/diagnosis/diagnosis.hpp"
#include "engine/train/rank_report.hpp"
#include "engine/train/scenario.hpp"

namespace gradsync {

/// The one way in which a run ended; each has an exit status (0, 4, 5, 6, 2).
enum class Outcome { kCompleted, kHang, kDesync, kFailed, kInvalid };
const char* to_string(Outcome outcome) noexcept;
int exit_status(Outcome outcome) noexcept;

/// What a world hands back after a run.
struct RunOutcome {
  std::vector<RankReport> reports;  ///< by rank; a rank that left none has state kRunning
  Seconds wall{0};
  std::optional<Seconds> simulated;  ///< simulator only
  Bytes peak_rss_bytes = 0;          ///< largest of the processes
  std::vector<std::string> notes;    ///< e.g. "fidelity flow (auto: 1024 ranks)"
};

/// The result of a run: what result.json holds, under the keys that docs/results.md lists.
struct RunResult {
  Outcome outcome = Outcome::kCompleted;
  std::optional<Diagnosis> diagnosis;
  nlohmann::ordered_json to_json() const;
  // The remaining members are added by the implementation.
};

/// Merges the ranks' reports: outcome, statistics over steps and ranks, diagnosis.
RunResult make_result(const Scenario& scenario, const RunOutcome& outcome);

/// Writes the run directory: scenario.json, result.json, steps.jsonl, trace.json, flight/rank-N.json.
/// Creates `directory`; refuses one that holds something else than an earlier run.
void write_run_directory(const std::string& directory, const Scenario& scenario,
                         const RunOutcome& outcome, const RunResult& result);

}  // namespace gradsync
