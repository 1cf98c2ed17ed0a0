#include <algorithm>

#include <fmt/format.h>

#include "gradsync/core/rank_list.hpp"
#include "gradsync/testbed/diagnosis/evidence.hpp"
#include "gradsync/testbed/diagnosis/rules.hpp"
#include "gradsync/testbed/diagnosis/sentences.hpp"

namespace gradsync::diagnosis {
namespace {

std::string batches(std::int64_t count) {
  return fmt::format("{} {}", count, count == 1 ? "batch" : "batches");
}

}  // namespace

std::optional<Diagnosis> find_left_loop(const Digest& digest) {
  const auto frontier = find_frontier(digest);
  if (!frontier) return std::nullopt;
  std::vector<int> left;
  std::string reason;
  for (const int rank : frontier->missing) {
    const RankView& view = digest.ranks[static_cast<std::size_t>(rank)];
    if (view.report == nullptr) continue;
    for (const RankEvent& event : view.report->events) {
      if (event.kind == RankEventKind::kLeftLoop) reason = ": " + event.what;
    }
    const bool early = view.standing == Standing::kFinished &&
                       view.report->steps_completed < view.report->steps_planned &&
                       view.report->steps_completed <= frontier->record->label.step;
    if (early) left.push_back(rank);
  }
  if (left.empty()) return std::nullopt;
  const RankReport& report = *digest.ranks[static_cast<std::size_t>(left.front())].report;
  Diagnosis diagnosis = make_diagnosis(DiagnosisKind::kLeftLoop, "deadlock");
  diagnosis.ranks = left;
  place(diagnosis, *frontier->record);
  diagnosis.step = report.steps_completed;
  diagnosis.because =
      fmt::format("{} left the training loop before step {} of {}, the others did not{}",
                  rank_list(left), report.steps_completed, report.steps_planned, reason);
  diagnosis.first_cause = "the decision to stop was not the same on all ranks";
  diagnosis.first_symptom = fmt::format("{}; {} never {} it", describe(*frontier), rank_list(left),
                                        verb(left, "enters", "enter"));
  return diagnosis;
}

/// A rank in a collective that all others have left: it was stopped there, or does not notice that
/// it is over. The ranks that wait for it are in a later one.
std::optional<Diagnosis> find_left_behind(const Digest& digest) {
  const auto found = find_frontier(digest);
  if (!found) return std::nullopt;
  const Frontier& frontier = *found;
  const auto has_left = [&](int rank) {
    const RankView& view = digest.ranks[static_cast<std::size_t>(rank)];
    return std::any_of(view.collectives.begin(), view.collectives.end(),
                       [&](const CollectiveRecord* record) {
                         return record->group == frontier.record->group &&
                                record->sequence == frontier.record->sequence &&
                                record->state == CollectiveState::kCompleted;
                       });
  };
  if (frontier.missing.empty() ||
      !std::all_of(frontier.missing.begin(), frontier.missing.end(), has_left)) {
    return std::nullopt;
  }
  Diagnosis diagnosis = make_diagnosis(DiagnosisKind::kStalledRank, "deadlock");
  diagnosis.ranks = frontier.waiting;
  place(diagnosis, *frontier.record);
  diagnosis.because = fmt::format(
      "{} {} in {}, which is over on all other ranks: stopped there, or the backend does not "
      "tell it",
      rank_list(frontier.waiting), verb(frontier.waiting, "stands", "stand"),
      describe_collective(*frontier.record));
  diagnosis.first_cause = diagnosis.because;
  diagnosis.first_symptom = fmt::format("{} went on and wait for {}", rank_list(frontier.missing),
                                        rank_list(frontier.waiting));
  diagnosis.fix =
      "look at that rank's process (is it stopped?), its host and its backend's progress thread";
  return diagnosis;
}

std::optional<Diagnosis> find_stopped(const Digest& digest) {
  constexpr int kSignalled = 128;  // a shell's convention for "ended by a signal"
  std::vector<int> stopped;
  bool others_reacted = false;
  for (const RankView& view : digest.ranks) {
    // A rank that failed and did not return from its clean-up has reacted.
    if (view.standing != Standing::kBlocked || view.report->clean_up_since) continue;
    const RankReport& report = *view.report;
    if (report.exit_signal || report.exit_code.value_or(0) > kSignalled) {
      stopped.push_back(view.rank);
    } else {
      others_reacted = others_reacted || report.exit_code.has_value();
    }
  }
  if (stopped.empty() || !others_reacted) return std::nullopt;
  const RankView& first = digest.ranks[static_cast<std::size_t>(stopped.front())];
  if (first.pending == nullptr) return std::nullopt;
  Diagnosis diagnosis = make_diagnosis(DiagnosisKind::kStalledRank, "deadlock");
  diagnosis.ranks = stopped;
  place(diagnosis, *first.pending);
  diagnosis.because = fmt::format(
      "{} {} in {} and did not react when the wait of another rank failed: its process had to be "
      "ended by a signal, where the others ended by themselves",
      rank_list(stopped), verb(stopped, "stands", "stand"), describe_collective(*first.pending));
  diagnosis.first_cause = diagnosis.because;
  if (const auto frontier = find_frontier(digest)) {
    diagnosis.first_symptom = describe(*frontier);
  }
  return diagnosis;
}

std::optional<Diagnosis> find_stalled(const Digest& digest) {
  const auto frontier = find_frontier(digest);
  if (!frontier) return std::nullopt;
  std::vector<int> stalled;
  for (const int rank : frontier->missing) {
    const RankView& view = digest.ranks[static_cast<std::size_t>(rank)];
    if (view.standing == Standing::kRunning) stalled.push_back(rank);
  }
  if (stalled.empty()) return std::nullopt;
  const RankReport& report = *digest.ranks[static_cast<std::size_t>(stalled.front())].report;
  const bool loads = report.phase == Phase::kData;
  const bool computes = report.phase == Phase::kForward || report.phase == Phase::kBackward ||
                        report.phase == Phase::kOptimizer;
  Diagnosis diagnosis = make_diagnosis(loads      ? DiagnosisKind::kStalledLoader
                                       : computes ? DiagnosisKind::kStalledCompute
                                                  : DiagnosisKind::kStalledRank,
                                       "deadlock");
  if (!loads && !computes) diagnosis.catalog.clear();  // any user code
  diagnosis.ranks = stalled;
  place(diagnosis, *frontier->record);
  diagnosis.step = report.steps_completed;
  diagnosis.because = fmt::format(
      "{} {} not come back from {} in step {} and entered no collective since ({} drawn)",
      rank_list(stalled), verb(stalled, "has", "have"), to_string(report.phase),
      report.steps_completed, batches(report.batches_drawn));
  diagnosis.first_cause = diagnosis.because;
  diagnosis.first_symptom = fmt::format("{}; {} never {} it", describe(*frontier),
                                        rank_list(stalled), verb(stalled, "enters", "enter"));
  return diagnosis;
}

}  // namespace gradsync::diagnosis
