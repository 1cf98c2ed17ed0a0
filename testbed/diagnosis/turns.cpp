#include "gradsync/testbed/diagnosis/turns.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include <fmt/format.h>

#include "gradsync/core/rank_list.hpp"
#include "gradsync/testbed/diagnosis/evidence.hpp"
#include "gradsync/testbed/diagnosis/sentences.hpp"

namespace gradsync::diagnosis {
namespace {

/// Whether the rank is known to have reached `step`.
bool came_to(const RankView& view, std::int64_t step) {
  return view.report != nullptr && view.report->steps_completed >= step;
}

bool contains(const std::vector<int>& ranks, int rank) {
  return std::ranges::binary_search(ranks, rank);
}

/// DDP's reduction of a bucket. A program may give a collective of its own the same name.
bool is_bucket(const CollectiveRecord& record) {
  return record.label.what == "gradients" && record.label.bucket >= 0;
}

/// Ranks outside `ranks` that reached `step`, ascending.
std::vector<int> others_at(const Digest& digest, const std::vector<int>& ranks, std::int64_t step) {
  std::vector<int> others;
  for (const RankView& view : digest.ranks) {
    if (!contains(ranks, view.rank) && came_to(view, step)) others.push_back(view.rank);
  }
  return others;
}

std::optional<Turn> find_other_start(const Digest& digest) {
  std::map<std::int64_t, std::vector<int>> ranks_by_step;
  for (const RankView& view : digest.ranks) {
    if (view.report != nullptr && !view.testified && !view.collectives.empty()) {
      ranks_by_step[view.report->first_step].push_back(view.rank);
    }
  }
  if (ranks_by_step.size() < 2) return std::nullopt;
  std::map<std::string, std::vector<int>> by_text;
  std::string text;
  for (const auto& [step, ranks] : ranks_by_step) {
    text += fmt::format("{}{} at step {}", text.empty() ? "" : ", ", rank_list(ranks), step);
    by_text[fmt::format("{}", step)] = ranks;
  }
  const Disagreement starts = compare_ranks(by_text, digest.absent().size());
  Turn turn;
  turn.kind = DiagnosisKind::kResumeDiffers;
  turn.ranks = starts.odd_ranks();
  turn.tie = starts.tie();
  turn.step = ranks_by_step.begin()->first;
  turn.because = "the ranks did not start at the same step: " + text;
  turn.first_cause = turn.because;
  return turn;
}

/// The steps that ranks skipped, according to their logs.
std::optional<Turn> find_skip(const Digest& digest) {
  std::map<std::int64_t, std::pair<std::vector<int>, const RankEvent*>> skips;
  for (const RankView& view : digest.ranks) {
    if (view.report == nullptr) continue;
    for (const RankEvent& event : view.report->events) {
      if (event.kind != RankEventKind::kSkipped) continue;
      auto& [ranks, first] = skips[event.step];
      if (!contains(ranks, view.rank)) ranks.push_back(view.rank);
      if (first == nullptr) first = &event;
    }
  }
  for (const auto& [step, skip] : skips) {
    const auto& [ranks, event] = skip;
    if (others_at(digest, ranks, step).empty()) continue;  // all skipped it together
    Turn turn;
    const bool caught = event->phase == Phase::kForward;
    turn.kind = caught ? DiagnosisKind::kSwallowedException : DiagnosisKind::kSkippedStep;
    turn.ranks = ranks;
    turn.step = step;
    turn.because =
        fmt::format("{} went on to the next batch without the collectives of step {} ({}: {})",
                    rank_list(ranks), step, to_string(event->phase), event->what);
    turn.first_cause = fmt::format("{} left out step {}", rank_list(ranks), step);
    return turn;
  }
  return std::nullopt;
}

/// The loop that a rank left, according to its log.
std::optional<Turn> find_way_out(const Digest& digest) {
  std::optional<Turn> found;
  for (const RankView& view : digest.ranks) {
    if (view.report == nullptr) continue;
    for (const RankEvent& event : view.report->events) {
      if (event.kind != RankEventKind::kLeftLoop) continue;
      if (found && found->step < event.step) continue;
      if (!found || event.step < found->step) {
        found.emplace();
        found->kind = DiagnosisKind::kLeftLoop;
        found->step = event.step;
        found->because = event.what;
      }
      found->ranks.push_back(view.rank);
    }
  }
  if (!found || others_at(digest, found->ranks, found->step).empty()) return std::nullopt;
  const RankReport& report = *digest.of(found->ranks.front()).report;
  found->because =
      fmt::format("{} left the training loop before step {} of {}, the others did not{}{}",
                  rank_list(found->ranks), found->step, report.steps_planned,
                  found->because.empty() ? "" : ": ", found->because);
  found->first_cause = "the decision to stop was not the same on all ranks";
  return found;
}

/// Steps whose gradients some ranks reduced and others kept local.
std::optional<Turn> find_local_step(const Digest& digest) {
  std::map<std::int64_t, std::set<int>> local, reduced;
  for (const RankView& view : digest.ranks) {
    if (view.report == nullptr) continue;
    for (const StepRecord& step : view.report->steps) {
      if (!step.last_batch_reduced) local[step.step].insert(view.rank);
    }
    for (const CollectiveRecord* record : view.collectives) {
      if (is_bucket(*record)) reduced[record->label.step].insert(view.rank);
    }
  }
  for (const auto& [step, ranks] : local) {
    std::vector<int> kept, others;
    std::ranges::set_difference(ranks, reduced[step], std::back_inserter(kept));
    std::ranges::set_difference(reduced[step], ranks, std::back_inserter(others));
    if (kept.empty() || others.empty()) continue;
    Turn turn;
    turn.kind = DiagnosisKind::kNoSyncDiffers;
    turn.ranks = kept.size() > others.size() ? others : kept;
    turn.step = step;
    turn.because = fmt::format(
        "{} kept the gradients of step {} local (no_sync), {} reduced theirs", rank_list(kept),
        step, kept.size() == 1 && others.size() == 1 ? rank_list(others) : "the others");
    turn.first_cause = turn.because;
    return turn;
  }
  return std::nullopt;
}

/// Whether the rank's records hold every collective of `step`.
bool reaches_before(const RankView& view, std::int64_t step) {
  if (view.report->phases.empty() || view.collectives.empty()) return false;  // a summary
  const CollectiveRecord& oldest = *view.collectives.front();
  return oldest.sequence == 0 || oldest.label.step < step;
}

/// A step that a rank ended without a bucket that others reduced: some parameter of that bucket got
/// no gradient, so the bucket never became complete.
std::optional<Turn> find_incomplete_step(const Digest& digest) {
  if (digest.scenario->ddp.join.enable) return std::nullopt;
  std::map<std::int64_t, std::set<std::int32_t>> issued;  // by step, on any rank
  for (const RankView& view : digest.ranks) {
    for (const CollectiveRecord* record : view.collectives) {
      if (is_bucket(*record)) {
        issued[record->label.step].insert(record->label.bucket);
      }
    }
  }
  std::optional<Turn> found;
  for (const RankView& view : digest.ranks) {
    if (view.report == nullptr || view.report->steps.empty()) continue;
    const StepRecord& last = view.report->steps.back();  // the next forward is rejected
    if (!last.last_batch_reduced || (found && found->step < last.step)) continue;
    std::set<std::int32_t> own;
    for (const CollectiveRecord* record : view.collectives) {
      const bool here = is_bucket(*record) && record->label.step == last.step;
      if (here) own.insert(record->label.bucket);
    }
    std::vector<std::int32_t> missing;
    std::ranges::set_difference(issued[last.step], own, std::back_inserter(missing));
    if (missing.empty() || !reaches_before(view, last.step)) continue;
    if (view.standing == Standing::kFinished) continue;
    if (!found || last.step < found->step) {
      found.emplace();
      found->kind = digest.scenario->ddp.static_graph ? DiagnosisKind::kStaticGraphChanged
                                                      : DiagnosisKind::kUnusedParameters;
      found->step = last.step;
      found->because = fmt::format(
          " ended step {} without bucket {}: a parameter in it got no gradient there, so the "
          "bucket "
          "was never complete",
          last.step, missing.front());
    }
    found->ranks.push_back(view.rank);
  }
  if (!found) return std::nullopt;
  found->because = rank_list(found->ranks) + found->because;
  found->first_cause = fmt::format("a branch of the model was not taken by {} in step {}",
                                   rank_list(found->ranks), found->step);
  return found;
}

}  // namespace

std::optional<Turn> first_turn(const Digest& digest) {
  std::optional<Turn> first;
  for (const auto find :
       {find_other_start, find_skip, find_way_out, find_local_step, find_incomplete_step}) {
    auto turn = find(digest);
    if (turn && (!first || turn->step < first->step)) first = std::move(turn);
  }
  return first;
}

}  // namespace gradsync::diagnosis
