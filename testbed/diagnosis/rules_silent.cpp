#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "gradsync/core/rank_list.hpp"
#include "gradsync/testbed/diagnosis/evidence.hpp"
#include "gradsync/testbed/diagnosis/rules.hpp"
#include "gradsync/testbed/diagnosis/sentences.hpp"

namespace gradsync::diagnosis {

Diagnosis silent(DiagnosisKind kind) {
  Diagnosis diagnosis = make_diagnosis(kind, "silent divergence");
  diagnosis.first_symptom = "none: every rank completes, and all have the same parameters";
  return diagnosis;
}

std::optional<Diagnosis> find_not_a_number(const Digest& digest) {
  std::map<std::int64_t, std::vector<int>> ranks_by_step;
  for (const RankView& view : digest.ranks) {
    if (view.report == nullptr) continue;
    for (const StepRecord& step : view.report->steps) {
      if (step.loss && !std::isfinite(*step.loss)) ranks_by_step[step.step].push_back(view.rank);
    }
  }
  if (ranks_by_step.empty() || !digest.all_finished()) return std::nullopt;
  const auto& [step, ranks] = *ranks_by_step.begin();
  if (ranks.size() == digest.ranks.size()) return std::nullopt;
  Diagnosis diagnosis = silent(DiagnosisKind::kNotANumber);
  diagnosis.ranks = ranks;
  diagnosis.step = step;
  diagnosis.because = fmt::format(
      "the loss of {} was not finite in step {}, and the all-reduce gave it to every rank",
      rank_list(ranks), step);
  diagnosis.first_cause = diagnosis.because;
  return diagnosis;
}

std::optional<Diagnosis> find_wrong_clip(const Digest& digest) {
  if (!digest.all_finished()) return std::nullopt;
  Diagnosis diagnosis = silent(DiagnosisKind::kClippedBeforeUnscale);
  const StepRecord* first = nullptr;
  const auto is_wrong = [](const StepRecord& step) {
    return step.clip_norm || step.scale_at_clip != 1 || step.unscales > 1;
  };
  for (const RankView& view : digest.ranks) {
    const auto& steps = view.report->steps;
    const auto wrong = std::find_if(steps.begin(), steps.end(), is_wrong);
    if (wrong == steps.end()) continue;
    diagnosis.ranks.push_back(view.rank);
    if (first == nullptr || wrong->step < first->step) first = &*wrong;
  }
  if (first == nullptr) return std::nullopt;
  diagnosis.step = first->step;
  if (first->clip_norm && first->grad_norm) {
    set_kind(diagnosis, DiagnosisKind::kNormReducedTwice);
    diagnosis.because = fmt::format(
        "in step {} the clip went by a norm of {:.6f}, the gradients' is {:.6f}: {:.6f} times as "
        "much, the root of {} ranks is {:.6f}; they were scaled to {:.6f}",
        first->step, *first->clip_norm, *first->grad_norm, *first->clip_norm / *first->grad_norm,
        digest.ranks.size(), std::sqrt(static_cast<double>(digest.ranks.size())),
        *first->grad_norm * first->clip_coefficient.value_or(1));
  } else if (first->unscales > 1) {
    set_kind(diagnosis, DiagnosisKind::kUnscaledTwice);
    diagnosis.because = fmt::format(
        "in step {} gradients were divided by the loss scale {} {} times: in a micro step that is "
        "not reduced, and again after the last",
        first->step, first->loss_scale, first->unscales);
  } else {
    set_kind(diagnosis, DiagnosisKind::kClippedBeforeUnscale);
    diagnosis.because = fmt::format(
        "in step {} gradients were clipped while they were {} times too large: the limit was held "
        "against a scaled norm of {:.6f}",
        first->step, first->scale_at_clip, first->grad_norm.value_or(0));
  }
  diagnosis.first_cause = diagnosis.because;
  return diagnosis;
}

namespace {

/// The batch sizes of one optimizer step on one rank differ: all batches have the loader's size,
/// except the last of an epoch.
std::optional<Diagnosis> find_uneven_micro_batches(const Digest& digest) {
  if (digest.gaps.scenario) return std::nullopt;
  const std::int64_t full = digest.scenario->train.batch_size;
  for (const StepOfRanks& records : steps_of_ranks(digest)) {
    std::vector<int> ranks;
    std::int64_t last = 0;
    for (const auto& [rank, step] : records) {
      const std::int64_t rest = step->samples - (step->batches - 1) * full;
      if (step->batches < 2 || rest <= 0 || rest >= full) continue;
      ranks.push_back(rank);
      last = rest;
    }
    if (ranks.empty()) continue;
    const StepRecord& step = *records.front().second;
    Diagnosis diagnosis = silent(DiagnosisKind::kUnevenBatches);
    diagnosis.ranks = ranks;
    diagnosis.step = step.step;
    diagnosis.because = fmt::format(
        "in step {} the last of {} batches had {} on {}, the others {}: the mean of the batches' "
        "means counts a sample of the last {:.3g} times as much as one of the others",
        step.step, step.batches, count_of(last, "sample"), rank_list(ranks), full,
        static_cast<double>(full) / static_cast<double>(last));
    diagnosis.first_cause = diagnosis.because;
    diagnosis.fix =
        "weigh each batch by its samples: divide the sum of the samples' losses by all samples of "
        "the step, not each batch's mean by the number of batches; or choose train.batch_size so "
        "that it divides the samples of a rank";
    return diagnosis;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Diagnosis> find_uneven_batches(const Digest& digest) {
  if (!digest.all_finished()) return std::nullopt;
  if (digest.scenario->ddp.join.enable) return find_uneven_micro_batches(digest);
  std::map<std::int64_t, std::map<std::int64_t, std::vector<int>>> ranks_by_step_and_samples;
  for (const RankView& view : digest.ranks) {
    for (const StepRecord& step : view.report->steps) {
      ranks_by_step_and_samples[step.step][step.samples].push_back(view.rank);
    }
  }
  for (const auto& [step, ranks_by_samples] : ranks_by_step_and_samples) {
    if (ranks_by_samples.size() < 2) continue;
    const auto& [fewest, ranks] = *ranks_by_samples.begin();
    const auto& [most, others] = *ranks_by_samples.rbegin();
    Diagnosis diagnosis = silent(DiagnosisKind::kUnevenBatches);
    diagnosis.ranks = ranks;
    diagnosis.step = step;
    diagnosis.because = fmt::format(
        "in step {} {} had {}, {} {}: the mean of the ranks' means counts a sample of {} {:.3g} "
        "times as much as one of {}",
        step, rank_list(ranks), count_of(fewest, "sample"), rank_list(others), most,
        rank_list(ranks),
        static_cast<double>(most) / static_cast<double>(std::max<std::int64_t>(fewest, 1)),
        rank_list(others));
    diagnosis.first_cause = diagnosis.because;
    return diagnosis;
  }
  return find_uneven_micro_batches(digest);
}

}  // namespace gradsync::diagnosis
