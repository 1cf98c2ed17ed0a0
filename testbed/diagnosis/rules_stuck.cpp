#include <algorithm>

#include <fmt/format.h>

#include "gradsync/core/rank_list.hpp"
#include "gradsync/testbed/diagnosis/evidence.hpp"
#include "gradsync/testbed/diagnosis/rules.hpp"
#include "gradsync/testbed/diagnosis/sentences.hpp"

namespace gradsync::diagnosis {
namespace {

void place(Diagnosis& diagnosis, const CollectiveRecord& record) {
  diagnosis.collective = describe_collective(record);
  if (record.label.step >= 0) diagnosis.step = record.label.step;
  if (record.label.bucket >= 0) diagnosis.bucket = record.label.bucket;
}

/// Where a rank stands, as the end of a sentence that begins with "rank N".
std::string standing_of(const RankView& view) {
  switch (view.standing) {
    case Standing::kFinished:
      return fmt::format("finished after {} of {}", view.report->steps_completed,
                         count_of(view.report->steps_planned, "step"));
    case Standing::kUnknown:
      return "left no report";
    case Standing::kBlocked:
      if (view.pending != nullptr) return "stood in " + describe_collective(*view.pending);
      break;
    case Standing::kDied:
    case Standing::kFailed:
    case Standing::kRunning:
      break;
  }
  const char* how = view.standing == Standing::kDied     ? "died"
                    : view.standing == Standing::kFailed ? "failed"
                                                         : "stood";
  return fmt::format("{} in {}, step {}", how, to_string(view.report->phase),
                     view.report->steps_completed);
}

/// Where a rank was at a time, as far as its record of phases reaches back.
const PhaseChange* phase_at(const RankReport& report, Seconds time) {
  const PhaseChange* found = nullptr;
  for (const PhaseChange& change : report.phases) {
    if (change.since <= time) found = &change;
  }
  return found;
}

/// Phases in which a rank does work of its own, of any length; in the others a rank that does not
/// come back is stuck.
bool may_take_long(Phase phase) {
  return phase == Phase::kInit || phase == Phase::kEvaluation || phase == Phase::kCheckpoint ||
         phase == Phase::kUser;
}

/// Whether a phase comes after the step that has been counted already.
bool after_step(Phase phase) {
  return phase == Phase::kEvaluation || phase == Phase::kCheckpoint || phase == Phase::kUser ||
         phase == Phase::kCheck;
}

std::string batches(std::int64_t count) {
  return fmt::format("{} {}", count, count == 1 ? "batch" : "batches");
}

/// "rank 3 stood in data, step 4; ranks 4-5 finished after 7 of 10 steps"
std::string describe_standings(const Digest& digest, const std::vector<int>& ranks) {
  std::vector<std::pair<std::string, std::vector<int>>> by_text;  // few texts, in order of ranks
  for (const int rank : ranks) {
    const std::string text = standing_of(digest.ranks[static_cast<std::size_t>(rank)]);
    auto same = std::find_if(by_text.begin(), by_text.end(),
                             [&](const auto& entry) { return entry.first == text; });
    if (same == by_text.end()) same = by_text.insert(by_text.end(), {text, {}});
    same->second.push_back(rank);
  }
  std::string sentence;
  for (const auto& [text, of] : by_text) {
    if (!sentence.empty()) sentence += "; ";
    sentence += fmt::format("{} {}", rank_list(of), text);
  }
  return sentence;
}

/// What was wrong with the world at `date` or later. All ranks are told the same.
std::vector<WorldCondition> conditions_since(const Digest& digest, Seconds date) {
  std::vector<WorldCondition> conditions;
  for (const RankView& view : digest.ranks) {
    if (view.report == nullptr) continue;
    for (const WorldCondition& condition : view.report->world) {
      if (condition.end.value_or(date) >= date) conditions.push_back(condition);
    }
    break;
  }
  return conditions;
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
  Diagnosis diagnosis;
  diagnosis.verdict = "deadlock";
  diagnosis.kind = "left_loop";
  diagnosis.catalog = "K07";
  diagnosis.ranks = left;
  place(diagnosis, *frontier->record);
  diagnosis.step = report.steps_completed;
  diagnosis.because =
      fmt::format("{} left the training loop before step {} of {}, the others did not{}",
                  rank_list(left), report.steps_completed, report.steps_planned, reason);
  diagnosis.first_cause = "the decision to stop was not the same on all ranks";
  diagnosis.first_symptom = fmt::format("{}; {} never {} it", describe(*frontier), rank_list(left),
                                        verb(left, "enters", "enter"));
  diagnosis.fix =
      "reduce the decision (an all-reduce with max of the flag, or rank 0's by broadcast) before "
      "anybody breaks";
  return diagnosis;
}

std::optional<Diagnosis> find_late_rank(const Digest& digest) {
  if (digest.first_failure != FirstFailure::kTimeout) return std::nullopt;
  const RankView& first = digest.ranks[static_cast<std::size_t>(digest.first_failed_rank)];
  if (first.pending == nullptr) return std::nullopt;
  // On a real network a rank that is merely slow learns of the failure when it comes to the same
  // collective: it was issued there after the wait of the others had ended.
  std::vector<int> late, waiting;
  for (const RankView& view : digest.ranks) {
    const bool here = view.pending != nullptr && view.pending->group == first.pending->group &&
                      view.pending->sequence == first.pending->sequence;
    if (!here) return std::nullopt;
    (view.pending->issued > first.report->ended ? late : waiting).push_back(view.rank);
  }
  if (late.empty()) return std::nullopt;
  Diagnosis diagnosis;
  diagnosis.verdict = "waiting";
  diagnosis.kind = "late_rank";
  diagnosis.catalog = "K14";
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
    // It came later, or was ended while it was still at something that may take long.
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
  Diagnosis diagnosis;
  diagnosis.verdict = "waiting";
  diagnosis.kind = "slow_section";
  diagnosis.catalog = "K14";
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

namespace {

/// A rank that stands in a collective which all others have left: it was stopped there, or cannot
/// see that it is over. Who waits for it is in a later one.
std::optional<Diagnosis> find_left_behind(const Digest& digest, const Frontier& frontier) {
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
  Diagnosis diagnosis;
  diagnosis.verdict = "deadlock";
  diagnosis.kind = "stalled_rank";
  diagnosis.catalog = "K16";
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

}  // namespace

std::optional<Diagnosis> find_stopped(const Digest& digest) {
  constexpr int kSignalled = 128;  // a shell's convention for "ended by a signal"
  std::vector<int> stopped;
  bool others_reacted = false;
  for (const RankView& view : digest.ranks) {
    // One that failed and then did not come back from its clean-up has reacted.
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
  Diagnosis diagnosis;
  diagnosis.verdict = "deadlock";
  diagnosis.kind = "stalled_rank";
  diagnosis.catalog = "K16";
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
  diagnosis.fix = "look at that rank's process (is it stopped?) and its host";
  return diagnosis;
}

std::optional<Diagnosis> find_stalled(const Digest& digest) {
  const auto frontier = find_frontier(digest);
  if (!frontier) return std::nullopt;
  if (auto found = find_left_behind(digest, *frontier)) return found;
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
  Diagnosis diagnosis;
  diagnosis.verdict = "deadlock";
  diagnosis.kind = loads ? "stalled_loader" : computes ? "stalled_compute" : "stalled_rank";
  diagnosis.catalog = loads ? "K19" : computes ? "K16" : "";
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
  diagnosis.fix =
      loads ? "look at that rank's loader: workers that were forked while a lock was held, a file "
              "system that does not answer; num_workers 0 shows whether it is the workers"
            : "look at that rank's device and library: a kernel that does not return, a lost "
              "completion; the program's logic is the same on all ranks up to here";
  return diagnosis;
}

std::optional<Diagnosis> find_network(const Digest& digest) {
  const auto frontier = find_frontier(digest);
  if (!frontier || !frontier->missing.empty()) return std::nullopt;
  Diagnosis diagnosis;
  diagnosis.verdict = "deadlock";
  diagnosis.kind = "network";
  diagnosis.catalog = "K16";
  place(diagnosis, *frontier->record);
  diagnosis.first_symptom = describe(*frontier);
  const std::string inside =
      "all ranks are inside the same collective, so none of them took a wrong turn: ";
  const std::vector<WorldCondition> conditions = conditions_since(digest, frontier->record->issued);
  if (conditions.empty()) {
    diagnosis.because = inside +
                        "the network or the backend does not deliver, or the collective takes "
                        "longer than the timeout";
    diagnosis.first_cause = "outside the ranks";
    diagnosis.fix = "look at links and hosts, and at what the timeout allows for this size";
    return diagnosis;
  }
  const bool delivers = std::all_of(conditions.begin(), conditions.end(),
                                    [](const WorldCondition& c) { return c.delivers; });
  std::string what;
  for (const WorldCondition& condition : conditions) {
    what += (what.empty() ? "" : "; ") + condition.what;
  }
  diagnosis.because = inside + what;
  diagnosis.first_cause = std::move(what);
  if (delivers) {
    diagnosis.verdict = "waiting";
    diagnosis.because += fmt::format("; slow, not stuck: it takes longer than the timeout of {}",
                                     format_duration(digest.scenario->timeout));
    diagnosis.fix =
        "mend the link; until then a timeout above what the collective takes over it lets the job "
        "go on";
  } else {
    diagnosis.fix =
        "mend the link; where it comes back by itself, a timeout above its outages lets the job go "
        "on";
  }
  return diagnosis;
}

std::optional<Diagnosis> describe_unknown(const Digest& digest) {
  if (digest.all_finished()) return std::nullopt;
  Diagnosis diagnosis;
  diagnosis.kind = "unknown";
  diagnosis.verdict = "deadlock";
  diagnosis.fix =
      "the records do not show the cause; flight/rank-N.json holds the last collectives of each "
      "rank";
  const auto frontier = find_frontier(digest);
  if (!frontier) {
    std::vector<int> all;
    for (const RankView& view : digest.ranks) all.push_back(view.rank);
    diagnosis.because =
        "no rank is known to wait in a collective: " + describe_standings(digest, all);
    diagnosis.first_cause = "not known";
    diagnosis.first_symptom = "the run did not end";
    if (digest.first_failure == FirstFailure::kTimeout) {
      diagnosis.first_symptom =
          digest.ranks[static_cast<std::size_t>(digest.first_failed_rank)].report->error;
    }
    return diagnosis;
  }
  place(diagnosis, *frontier->record);
  diagnosis.first_symptom = describe(*frontier);
  diagnosis.ranks = frontier->missing;
  diagnosis.because = fmt::format(
      "{} {} not entered the collective in which the others wait: {}", rank_list(frontier->missing),
      verb(frontier->missing, "has", "have"), describe_standings(digest, frontier->missing));
  diagnosis.first_cause = "not known: why they did not come there";
  return diagnosis;
}

}  // namespace gradsync::diagnosis
