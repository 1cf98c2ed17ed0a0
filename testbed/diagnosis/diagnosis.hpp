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

/// One line of the per-rank table of a diagnosis; ranks with equal lines are folded into one (times
/// do not count: ranks never arrive at the same nanosecond).
struct DiagnosisRow {
  std::vector<int> ranks;
  std::string state;  ///< "finished", "blocked", "failed", "died", "running", "no report"
  std::string phase;
  std::string last_completed;  ///< the last collective that completed there; empty for none
  std::string blocked_in;      ///< empty unless blocked
  std::string detail;          ///< the error or how the process ended; empty for none
  /// In this state, on the first of the ranks that came to it; absent where nobody saw it.
  std::optional<Seconds> since;
  std::optional<std::int64_t> steps_completed;  ///< absent where the ranks left no report
  std::optional<int> exit_code;                 ///< of the process, where somebody saw it
  std::vector<int> waits_for;                   ///< blocked: who has not come to `blocked_in`
  std::string next_expected;  ///< not blocked: what others issued next; empty for nothing
};

/// A collective near the point where the ranks' sequences part.
struct SequenceRow {
  std::vector<int> ranks;                ///< who issued it, ascending
  std::optional<std::int64_t> sequence;  ///< absent where these ranks issued nothing more
  std::string collective;
};

/// Where the members of a process group stopped issuing the same collectives.
struct Divergence {
  std::string group;
  std::optional<std::int64_t> last_agreed;  ///< sequence number; absent if the first one differs
  std::vector<SequenceRow> rows;  ///< up to three before, then up to three of each set of ranks
};

/// What it takes to see the failure again.
struct Reproduction {
  std::string scenario_hash;              ///< of the scenario without output, expect and backend
  std::string seeds;                      ///< "seeds: weights 0, data 0, sampler 42"
  std::string command;                    ///< in the run directory
  std::optional<std::int64_t> stop_step;  ///< the first wrong step
};

/// Why a run did not complete. No sentence holds a time, an address or a process number, so equal
/// failures give equal sentences in every world; times stand in the table alone.
struct Diagnosis {
  /// "deadlock", "waiting" (slow, but alive), "crash", "desync" (ranks that were out of step, seen
  /// before it did harm or when their parameters parted), "silent divergence" (nothing stopped, and
  /// the training is wrong), "clean" (nothing is wrong, and something by design is worth a line)
  std::string verdict;
  /// "certain": the ranks' records show it; "likely": it follows from what is left when reports are
  /// missing or other causes are ruled out; "tie": something differs, and no majority says which
  /// side is right; "open": the records show who waits, but not why
  std::string confidence = "certain";
  DiagnosisKind kind = DiagnosisKind::kUnknown;
  std::string catalog;     ///< its entry in docs/hangs.md, "K01"; empty where it has none
  std::vector<int> ranks;  ///< the root cause is there, ascending; empty where it is not known
  std::optional<std::int64_t> step;    ///< the first wrong one
  std::optional<std::int64_t> bucket;  ///< of the collective
  std::string collective;     ///< where it shows: "allreduce #5 of 1567208 float32 elements, ..."
  std::string because;        ///< the reason, with the arithmetic
  std::string fix;            ///< what to change in the scenario
  std::string first_cause;    ///< what went wrong first
  std::string first_symptom;  ///< what is seen first
  std::vector<std::string> chain;         ///< who waits for whom, where several groups are involved
  std::vector<std::string> consequences;  ///< what followed from it on other ranks
  std::vector<std::string> notes;         ///< what is missing, and what else was found
  std::vector<std::string> ruled_out;     ///< what the records show not to be the cause
  std::optional<Divergence> divergence;   ///< absent where all ranks issued the same
  Reproduction reproduction;
  std::vector<DiagnosisRow> table;  ///< by first rank
};

/// From the ranks' reports to a verdict; nothing if every rank finished, all agree and the training
/// was what the scenario says. Does not
/// know which backend the reports come from: equal reports give equal text. Reports of some ranks
/// may be missing, in any order, or without detail; what is missing is said in `notes`. `gaps`:
/// what is missing beside reports.
std::optional<Diagnosis> diagnose(const std::vector<RankReport>& reports, const Scenario& scenario,
                                  const EvidenceGaps& gaps = {});

nlohmann::ordered_json to_json(const Diagnosis& diagnosis);
/// For a terminal, ends with a line end.
std::string format_text(const Diagnosis& diagnosis);

}  // namespace gradsync
