#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "engine/train/rank_report.hpp"
#include "engine/train/scenario.hpp"

namespace gradsync {

/// One line of the per-rank table of a diagnosis; ranks with equal lines are folded into one.
struct DiagnosisRow {
  std::vector<int> ranks;
  std::string state;  ///< "finished", "blocked", "failed", "died", "running"
  std::string phase;
  std::string last_completed;  ///< the last collective that completed there
  std::string blocked_in;      ///< empty unless blocked
  Seconds since{0};
  std::int64_t steps_completed = 0;
};

/// Why a run did not complete. See docs/hangs.md.
struct Diagnosis {
  std::string verdict;  ///< "deadlock", "crash", "desync", "waiting"
  std::string kind;     ///< "uneven_shards", "rank_died", "error", "mismatch", "unknown"
  std::vector<int> ranks;  ///< the root cause is there
  std::optional<std::int64_t> step;
  std::optional<std::int64_t> bucket;
  std::string collective;    ///< "allreduce #5 of 1567208 float32 elements"
  std::string because;       ///< one sentence, with the arithmetic
  std::string fix;           ///< what to change in the scenario
  std::string first_cause;   ///< what went wrong first
  std::string first_symptom; ///< what is seen first
  std::vector<DiagnosisRow> table;
};

/// From the ranks' reports to a verdict; nothing if every rank finished. Does not know which world
/// the reports come from: equal reports give equal text. Reports of some ranks may be missing.
std::optional<Diagnosis> diagnose(const std::vector<RankReport>& reports, const Scenario& scenario);

nlohmann::ordered_json to_json(const Diagnosis& diagnosis);
/// For a terminal.
std::string format_text(const Diagnosis& diagnosis);

}  // namespace gradsync
