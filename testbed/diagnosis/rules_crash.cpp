#include <algorithm>
#include <set>
#include <string>

#include <fmt/format.h>

#include "gradsync/core/rank_list.hpp"
#include "gradsync/testbed/diagnosis/evidence.hpp"
#include "gradsync/testbed/diagnosis/rules.hpp"
#include "gradsync/testbed/diagnosis/sentences.hpp"

namespace gradsync::diagnosis {
namespace {

/// Adds the effects of one rank's failure on the others, and the step in which it shows.
void add_consequences(Diagnosis& diagnosis, const Digest& digest) {
  const auto frontier = find_frontier(digest);
  if (!frontier) return;
  diagnosis.collective = describe_collective(*frontier->record);
  if (frontier->record->label.bucket >= 0) diagnosis.bucket = frontier->record->label.bucket;
  if (!diagnosis.step && frontier->record->label.step >= 0) {
    diagnosis.step = frontier->record->label.step;
  }
  diagnosis.first_symptom = describe(*frontier);
  diagnosis.consequences.push_back(
      fmt::format("the errors of {} follow from it", rank_list(frontier->waiting)));
}

/// The rank's step. A step is counted before the evaluation, checkpoint and other user code that
/// follow it.
std::int64_t step_of(const RankReport& report) {
  const bool counted = report.phase == Phase::kEvaluation || report.phase == Phase::kCheckpoint ||
                       report.phase == Phase::kUser || report.phase == Phase::kCheck;
  return std::max<std::int64_t>(report.steps_completed - (counted ? 1 : 0), 0);
}

/// "in step 2 (optimizer)", or only the phase outside the training loop.
std::string place_of(const RankReport& report) {
  const bool in_loop = report.phase != Phase::kInit && report.phase != Phase::kShutdown;
  return in_loop ? fmt::format("in step {} ({})", step_of(report), to_string(report.phase))
                 : fmt::format("in {}", to_string(report.phase));
}

/// The end of a sentence that starts with "the process of rank N".
std::string describe_exit(const RankReport& report) {
  constexpr int kSignalled = 128;
  if (report.exit_signal) return "was ended by " + describe_signal(*report.exit_signal);
  if (report.exit_code.value_or(0) > kSignalled) {
    return "was ended by " + describe_signal(*report.exit_code - kSignalled);
  }
  if (report.exit_code) {
    return fmt::format("ended with exit status {} and without a report", *report.exit_code);
  }
  return "ended without a report";
}

/// The first report, by time, of a rank that noticed a missing rank; null if there is none, or if
/// something else is known to have gone wrong first.
const RankReport* first_witness_of_a_death(const Digest& digest) {
  if (digest.first_failure != FirstFailure::kNone) return nullptr;
  const RankReport* first = nullptr;
  for (const RankView& view : digest.ranks) {
    if (view.report == nullptr || view.report->error_code != ErrorCode::kRankDied) continue;
    if (first == nullptr || view.report->ended < first->ended) first = view.report;
  }
  return first;
}

/// Whether every rank failed with the same error, so that no rank's failure is the cause of
/// another's. The engine's own comparisons (kDesync) report on every rank what differs on some.
bool failed_alike(const Digest& digest) {
  std::set<std::string> errors;
  for (const RankView& view : digest.ranks) {
    if (view.standing != Standing::kFailed || view.report->error_code == ErrorCode::kDesync) {
      return false;
    }
    std::string error = view.report->error;
    const std::string rank = fmt::format("rank {}", view.rank);
    if (error.starts_with(rank)) error.erase(0, rank.size());
    errors.insert(std::move(error));
  }
  return errors.size() == 1;
}

Diagnosis error_on_every_rank(const Digest& digest) {
  const RankReport& report = *digest.ranks.front().report;
  Diagnosis diagnosis = make_diagnosis(DiagnosisKind::kError, "crash");
  diagnosis.ranks = digest.with(Standing::kFailed);
  if (report.phase != Phase::kInit) diagnosis.step = step_of(report);
  diagnosis.because = report.error;
  diagnosis.first_cause = "every rank failed " + place_of(report);
  diagnosis.fix =
      "fix the problem named in the error: the configuration or the program is wrong on "
      "every rank";
  return diagnosis;
}

}  // namespace

std::optional<Diagnosis> find_rank_died(const Digest& digest) {
  Diagnosis diagnosis = make_diagnosis(DiagnosisKind::kRankDied, "crash");
  if (digest.first_failure == FirstFailure::kDeath) {
    const RankView& dead = digest.ranks[static_cast<std::size_t>(digest.first_failed_rank)];
    diagnosis.ranks = {dead.rank};
    diagnosis.because =
        fmt::format("the process of rank {} {}", dead.rank, describe_exit(*dead.report));
  } else if (const RankReport* witness = first_witness_of_a_death(digest)) {
    // Nobody watched the processes, but other ranks noticed a missing rank.
    if (digest.absent().empty()) diagnosis.ranks = digest.with(Standing::kUnknown);
    diagnosis.because =
        diagnosis.ranks.empty()
            ? witness->error
            : fmt::format("the process of {} ended without a report", rank_list(diagnosis.ranks));
  } else {
    return std::nullopt;
  }
  diagnosis.first_cause = diagnosis.because;
  add_consequences(diagnosis, digest);
  return diagnosis;
}

std::optional<Diagnosis> find_hidden_error(const Digest& digest) {
  for (const RankView& view : digest.ranks) {
    if (view.report == nullptr) continue;
    const auto& events = view.report->events;
    const auto raised = std::find_if(events.begin(), events.end(), [](const RankEvent& event) {
      return event.kind == RankEventKind::kRaised;
    });
    if (raised == events.end()) continue;
    // If the host does not wait for a collective, the handler finishes as intended, and only the
    // other ranks see the collective's error.
    const bool is_hidden = view.report->error.find(raised->what) == std::string::npos;
    if (!is_hidden && view.pending == nullptr) continue;
    Diagnosis diagnosis = make_diagnosis(DiagnosisKind::kError, "crash");
    diagnosis.ranks = {view.rank};
    diagnosis.step = raised->step;
    diagnosis.because = fmt::format("rank {} raised in step {} ({}): {}", view.rank, raised->step,
                                    to_string(raised->phase), raised->what);
    diagnosis.first_cause = diagnosis.because;
    if (view.pending != nullptr) {
      diagnosis.collective = describe_collective(*view.pending);
      diagnosis.first_symptom = fmt::format(
          "its handler went into {}{}, {}", diagnosis.collective,
          view.pending->label.site.empty() ? "" : " at " + view.pending->label.site,
          is_hidden ? "and the error of that hides the first" : "where the others are not");
    }
    std::vector<int> others;
    for (const RankView& other : digest.ranks) {
      if (other.rank != view.rank) others.push_back(other.rank);
    }
    diagnosis.consequences.push_back(
        fmt::format("the errors of {} follow from it", rank_list(others)));
    diagnosis.fix =
        "fix the problem named in the first error, and issue no collective in an exception "
        "handler: "
        "the other ranks are not there";
    return diagnosis;
  }
  return std::nullopt;
}

std::optional<Diagnosis> find_error(const Digest& digest) {
  if (digest.first_failure != FirstFailure::kError) return std::nullopt;
  if (failed_alike(digest)) return error_on_every_rank(digest);
  const RankReport& report =
      *digest.ranks[static_cast<std::size_t>(digest.first_failed_rank)].report;
  Diagnosis diagnosis = make_diagnosis(DiagnosisKind::kError, "crash");
  if (report.error_code == ErrorCode::kDesync) {
    // Found by the engine's own comparison, which names the difference.
    diagnosis.verdict = "desync";
    set_kind(diagnosis, DiagnosisKind::kMismatch);
  }
  diagnosis.ranks = {digest.first_failed_rank};
  // The rank that found a difference need not be the one that differs.
  if (report.error_code == ErrorCode::kDesync && !digest.absent().empty()) diagnosis.ranks.clear();
  if (report.phase != Phase::kInit) diagnosis.step = step_of(report);
  diagnosis.because = report.error;
  diagnosis.first_cause =
      fmt::format("rank {} failed {}", digest.first_failed_rank, place_of(report));
  add_consequences(diagnosis, digest);
  std::vector<int> later = digest.with(Standing::kFailed);
  std::erase(later, digest.first_failed_rank);
  if (!later.empty()) {
    diagnosis.notes.push_back(fmt::format("{} failed too, later", rank_list(later)));
  }
  diagnosis.fix =
      fmt::format("fix the problem named in rank {}'s error; the other ranks failed because of it",
                  digest.first_failed_rank);
  return diagnosis;
}

}  // namespace gradsync::diagnosis
