#include <algorithm>

#include <fmt/format.h>

#include "gradsync/core/rank_list.hpp"
#include "gradsync/testbed/diagnosis/evidence.hpp"
#include "gradsync/testbed/diagnosis/rules.hpp"
#include "gradsync/testbed/diagnosis/sentences.hpp"

namespace gradsync::diagnosis {
namespace {

/// The phase of a rank at some time, as far back as its record of phases goes.
const PhaseChange* phase_at(const RankReport& report, Seconds time) {
  const PhaseChange* found = nullptr;
  for (const PhaseChange& change : report.phases) {
    if (change.since <= time) found = &change;
  }
  return found;
}

/// Phases of user-defined length; in other phases, a rank that does not return is stuck.
bool may_take_long(Phase phase) {
  return phase == Phase::kInit || phase == Phase::kEvaluation || phase == Phase::kCheckpoint ||
         phase == Phase::kUser;
}

/// Whether a phase follows a step that has already been counted.
bool after_step(Phase phase) {
  return phase == Phase::kEvaluation || phase == Phase::kCheckpoint || phase == Phase::kUser ||
         phase == Phase::kCheck;
}

}  // namespace

std::optional<Diagnosis> find_late_rank(const Digest& digest) {
  if (digest.first_failure != FirstFailure::kTimeout) return std::nullopt;
  const RankView& first = digest.ranks[static_cast<std::size_t>(digest.first_failed_rank)];
  if (first.pending == nullptr) return std::nullopt;
  // On a real network, a rank that is only slow learns of the failure when it reaches the same
  // collective, which it issued after the others had timed out.
  std::vector<int> late, waiting;
  for (const RankView& view : digest.ranks) {
    const bool here = view.pending != nullptr && view.pending->group == first.pending->group &&
                      view.pending->sequence == first.pending->sequence;
    if (!here) return std::nullopt;
    (view.pending->issued > first.report->ended ? late : waiting).push_back(view.rank);
  }
  if (late.empty()) return std::nullopt;
  Diagnosis diagnosis = make_diagnosis(DiagnosisKind::kLateRank, "waiting");
  diagnosis.ranks = late;
  place(diagnosis, *first.pending);
  diagnosis.because =
      fmt::format("{} came to {} only after the wait of {} had timed out: slow, not stuck",
                  rank_list(late), describe_collective(*first.pending), rank_list(waiting));
  diagnosis.first_cause = fmt::format("{} {} late", rank_list(late), verb(late, "was", "were"));
  diagnosis.first_symptom =
      fmt::format("{} {} in it", rank_list(waiting), verb(waiting, "waits", "wait"));
  diagnosis.fix = fmt::format(
      "raise timeout above what the slowest rank takes between two collectives, or find what holds "
      "{} up (trace.json shows the phases of each step)",
      rank_list(late));
  return diagnosis;
}

std::optional<Diagnosis> find_slow_section(const Digest& digest) {
  if (digest.first_failure != FirstFailure::kTimeout) return std::nullopt;
  const RankView& first = digest.ranks[static_cast<std::size_t>(digest.first_failed_rank)];
  const Seconds given_up = first.report->ended;
  const CollectiveRecord* waited_in = first.pending;
  std::vector<int> slow;
  const PhaseChange* section = nullptr;
  for (const RankView& view : digest.ranks) {
    if (view.report == nullptr || view.rank == first.rank) continue;
    if (view.standing == Standing::kFinished) continue;
    const bool arrived = view.pending != nullptr && view.pending->issued <= given_up;
    if (arrived) continue;
    const PhaseChange* then = phase_at(*view.report, given_up);
    // It arrived later, or was ended while still in a phase that may take long.
    const bool came_later = view.report->state != RankState::kRunning && view.pending != nullptr;
    const bool still_there = view.standing == Standing::kRunning &&
                             view.report->state == RankState::kRunning && then != nullptr &&
                             may_take_long(then->phase);
    const bool own_work =
        then != nullptr && then->phase != Phase::kShutdown && (came_later || still_there);
    if (!own_work) continue;
    if (section == nullptr) section = then;
    slow.push_back(view.rank);
  }
  if (slow.empty() || waited_in == nullptr) return std::nullopt;
  Diagnosis diagnosis = make_diagnosis(DiagnosisKind::kSlowSection, "waiting");
  diagnosis.ranks = slow;
  place(diagnosis, *waited_in);
  diagnosis.step = std::max<std::int64_t>(section->step - (after_step(section->phase) ? 1 : 0), 0);
  const Seconds timeout = digest.scenario->timeout;
  diagnosis.because = fmt::format(
      "{} {} alive and in {} when the others gave up after {}: slow, not stuck", rank_list(slow),
      verb(slow, "was", "were"), to_string(section->phase), format_duration(timeout));
  diagnosis.first_cause = fmt::format("{} took longer than the timeout for {}", rank_list(slow),
                                      to_string(section->phase));
  diagnosis.first_symptom =
      fmt::format("rank {} waits in {}", first.rank, describe_collective(*waited_in));
  diagnosis.fix = fmt::format(
      "raise timeout above what {} takes, move that work off the critical path (all ranks in "
      "parallel, or a thread), or give it a group with a longer timeout",
      to_string(section->phase));
  return diagnosis;
}

}  // namespace gradsync::diagnosis
