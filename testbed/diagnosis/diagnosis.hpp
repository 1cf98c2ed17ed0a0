#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "gradsync/testbed/diagnosis/kinds.hpp"
#include "gradsync/testbed/record/evidence_gaps.hpp"
#include "gradsync/testbed/record/rank_report.hpp"
#include "gradsync/testbed/scenario/scenario.hpp"

namespace gradsync {

/// One line of a diagnosis's per-rank table. Ranks with equal lines share one, ignoring times,
/// because ranks never arrive in the same nanosecond.
struct DiagnosisRow {
  std::vector<int> ranks;
  std::string state;  ///< "finished", "blocked", "failed", "died", "running", "no report"
  std::string phase;
  std::string last_completed;  ///< last completed collective; empty for none
  std::string blocked_in;      ///< empty unless blocked
  std::string detail;          ///< the error, or how the process ended; may be empty
  /// When the first of the ranks entered this state; absent if unknown.
  std::optional<Seconds> since;
  std::optional<std::int64_t> steps_completed;  ///< absent if the ranks left no report
  std::optional<int> exit_code;                 ///< of the process, if observed
  std::vector<int> waits_for;  ///< if blocked: ranks that have not joined `blocked_in`
  std::string next_expected;   ///< if not blocked: what others issued next; may be empty
};

/// A collective near the point where the ranks' sequences diverge.
struct SequenceRow {
  std::vector<int> ranks;                ///< ranks that issued it, ascending
  std::optional<std::int64_t> sequence;  ///< absent if these ranks issued nothing more
  std::string collective;
};

/// The point at which the members of a process group stopped issuing the same collectives.
struct Divergence {
  std::string group;
  std::optional<std::int64_t> last_agreed;  ///< sequence number; absent if the first one differs
  std::vector<SequenceRow> rows;  ///< up to three before, then up to three per set of ranks
};

/// How to reproduce the failure.
struct Reproduction {
  std::string scenario_hash;              ///< of the scenario without output, expect and backend
  std::string seeds;                      ///< "seeds: weights 0, data 0, sampler 42"
  std::string command;                    ///< to run in the run directory
  std::optional<std::int64_t> stop_step;  ///< the first wrong step
};

/// Why a run did not complete. Sentences contain no times, addresses or process ids, so that equal
/// failures give equal sentences on every backend; only the table has times.
struct Diagnosis {
  /// "deadlock", "waiting" (slow, but alive), "crash", "desync" (ranks were out of step, detected
  /// before it did harm or when their parameters diverged), "silent divergence" (nothing stopped,
  /// but the training is wrong), "clean" (nothing is wrong, but something intended is worth a line)
  std::string verdict;
  /// "certain": the ranks' records show it; "likely": inferred, because reports are missing or
  /// other causes are ruled out; "tie": something differs, and no majority says which side is
  /// right; "open": the records show who waits, but not why
  std::string confidence = "certain";
  DiagnosisKind kind = DiagnosisKind::kUnknown;
  std::string catalog;                 ///< its entry in docs/hangs.md, "K01"; empty if none
  std::vector<int> ranks;              ///< ranks with the root cause, ascending; empty if unknown
  std::optional<std::int64_t> step;    ///< the first wrong one
  std::optional<std::int64_t> bucket;  ///< of the collective
  std::string collective;     ///< where it shows: "allreduce #5 of 1567208 float32 elements, ..."
  std::string because;        ///< the reason, with the arithmetic
  std::string fix;            ///< what to change in the scenario
  std::string first_cause;    ///< what went wrong first
  std::string first_symptom;  ///< what is visible first
  std::vector<std::string> chain;         ///< who waits for whom, if several groups are involved
  std::vector<std::string> consequences;  ///< effects on other ranks
  std::vector<std::string> notes;         ///< missing evidence, and other findings
  std::vector<std::string> ruled_out;     ///< causes excluded by the records
  std::optional<Divergence> divergence;   ///< absent if all ranks issued the same
  Reproduction reproduction;
  std::vector<DiagnosisRow> table;  ///< by first rank
};

/// Diagnoses a run from its ranks' reports; nullopt if every rank finished, all agree, and the
/// training followed the scenario. Independent of the backend: equal reports give equal text.
/// Reports may be missing, unordered, or without detail; `notes` says what is missing. `gaps`:
/// missing evidence other than reports.
std::optional<Diagnosis> diagnose(const std::vector<RankReport>& reports, const Scenario& scenario,
                                  const EvidenceGaps& gaps = {});

nlohmann::ordered_json to_json(const Diagnosis& diagnosis);
/// Terminal output; ends with a newline.
std::string format_text(const Diagnosis& diagnosis);

}  // namespace gradsync
