#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>

#include "gradsync/core/rank_list.hpp"
#include "gradsync/testbed/diagnosis/evidence.hpp"
#include "gradsync/testbed/diagnosis/rules.hpp"
#include "gradsync/testbed/diagnosis/sentences.hpp"

namespace gradsync::diagnosis {
namespace {

/// The samples of one epoch, over all ranks.
struct Epoch {
  std::map<int, const std::vector<std::int64_t>*> by_rank;
  bool complete = true;
};

std::map<std::int64_t, Epoch> read_epochs(const Digest& digest) {
  std::map<std::int64_t, Epoch> epochs;
  for (const RankView& view : digest.ranks) {
    for (const EpochSamples& samples : view.report->epochs) {
      Epoch& epoch = epochs[samples.epoch];
      epoch.by_rank[view.rank] = &samples.indices;
      epoch.complete = epoch.complete && samples.complete;
    }
  }
  return epochs;
}

/// How often samples were drawn in one epoch.
struct Coverage {
  std::int64_t drawn = 0;
  std::int64_t distinct = 0;
  std::set<int> ranks_that_share;  ///< that drew a sample which another rank drew as well
};

Coverage cover(const Epoch& epoch) {
  Coverage coverage;
  std::map<std::int64_t, std::set<int>> ranks_by_sample;
  for (const auto& [rank, indices] : epoch.by_rank) {
    coverage.drawn += std::ssize(*indices);
    for (const std::int64_t sample : *indices) ranks_by_sample[sample].insert(rank);
  }
  coverage.distinct = std::ssize(ranks_by_sample);
  for (const auto& [sample, ranks] : ranks_by_sample) {
    if (ranks.size() > 1) coverage.ranks_that_share.insert(ranks.begin(), ranks.end());
  }
  return coverage;
}

Diagnosis silent(std::string kind, std::string catalog) {
  Diagnosis diagnosis;
  diagnosis.verdict = "silent divergence";
  diagnosis.kind = std::move(kind);
  diagnosis.catalog = std::move(catalog);
  diagnosis.first_symptom = "none: every rank completes, and all have the same parameters";
  return diagnosis;
}

/// Ranks whose configuration (the sampler's seed is a part of it) is not that of most; all where
/// there is no such majority, none where it is the same everywhere.
std::vector<int> ranks_of_other_configuration(const Digest& digest) {
  std::map<std::string, std::vector<int>> ranks_by_hash;
  for (const RankView& view : digest.ranks) {
    ranks_by_hash[view.report->config_hash].push_back(view.rank);
  }
  std::size_t most = 0;
  for (const auto& [hash, ranks] : ranks_by_hash) most = std::max(most, ranks.size());
  const auto majorities = std::count_if(ranks_by_hash.begin(), ranks_by_hash.end(),
                                        [&](const auto& of) { return of.second.size() == most; });
  std::vector<int> odd;
  for (const auto& [hash, ranks] : ranks_by_hash) {
    if (ranks_by_hash.size() > 1 && (majorities > 1 || ranks.size() < most)) {
      odd.insert(odd.end(), ranks.begin(), ranks.end());
    }
  }
  std::sort(odd.begin(), odd.end());
  return odd;
}

/// Ranks that draw more of the data twice than padding explains.
std::optional<Diagnosis> find_overlap(const Digest& digest, std::int64_t number, const Epoch& epoch,
                                      std::int64_t dataset) {
  const auto world = std::ssize(digest.ranks);
  const Coverage coverage = cover(epoch);
  const std::int64_t repeated = coverage.drawn - coverage.distinct;
  const std::int64_t padding = world - 1;  // the most that DistributedSampler repeats
  if (repeated <= padding) return std::nullopt;
  std::map<std::vector<std::int64_t>, std::vector<int>> ranks_by_list;
  for (const auto& [rank, indices] : epoch.by_rank) ranks_by_list[*indices].push_back(rank);
  const auto largest = std::max_element(
      ranks_by_list.begin(), ranks_by_list.end(),
      [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
  const bool shared = largest->second.size() > 1;
  Diagnosis diagnosis = silent(shared ? "samples_not_sharded" : "samples_overlap", "K10");
  diagnosis.ranks = shared ? largest->second : ranks_of_other_configuration(digest);
  if (diagnosis.ranks.empty()) {
    diagnosis.ranks.assign(coverage.ranks_that_share.begin(), coverage.ranks_that_share.end());
  }
  diagnosis.because = fmt::format(
      "in epoch {} {} of {} samples were drawn, {} of them more than once and {} not at all: {}",
      number, coverage.distinct, dataset, repeated, dataset - coverage.distinct,
      shared ? fmt::format("{} drew the same samples in the same order", rank_list(largest->second))
             : std::string("the ranks do not deal from one order"));
  diagnosis.first_cause = diagnosis.because;
  diagnosis.fix = shared
                      ? "deal each rank a shard of its own: num_replicas and rank of the sampler, "
                        "split_dataset_by_node for a stream"
                      : "give the sampler one seed, and the same epoch, on every rank";
  return diagnosis;
}

std::optional<Diagnosis> find_same_order(const Digest& digest,
                                         const std::map<std::int64_t, Epoch>& epochs) {
  if (!digest.scenario->sampler.shuffle || epochs.size() < 2) return std::nullopt;
  const Epoch& first = epochs.begin()->second;
  const Epoch& second = std::next(epochs.begin())->second;
  std::vector<int> same;
  for (const auto& [rank, indices] : first.by_rank) {
    const auto other = second.by_rank.find(rank);
    if (other != second.by_rank.end() && indices->size() > 1 && *indices == *other->second) {
      same.push_back(rank);
    }
  }
  if (same.empty()) return std::nullopt;
  Diagnosis diagnosis = silent("same_order_every_epoch", "K10");
  diagnosis.ranks = same;
  diagnosis.because = fmt::format(
      "{} drew the samples of epoch 1 in the order of epoch 0: the sampler was not told the epoch",
      rank_list(same));
  diagnosis.first_cause = diagnosis.because;
  diagnosis.fix = "call sampler.set_epoch(epoch) on every rank (set sampler.set_epoch to true)";
  return diagnosis;
}

}  // namespace

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
  Diagnosis diagnosis = silent("not_a_number", "K08");
  diagnosis.ranks = ranks;
  diagnosis.step = step;
  diagnosis.because = fmt::format(
      "the loss of {} was not finite in step {}, and the all-reduce gave it to every rank",
      rank_list(ranks), step);
  diagnosis.first_cause = diagnosis.because;
  diagnosis.fix =
      "reduce a flag (max) of whether the loss is finite and skip the update on every rank, as "
      "GradScaler does; skipping on one rank alone puts the ranks out of step";
  return diagnosis;
}

std::optional<Diagnosis> find_wrong_samples(const Digest& digest) {
  if (!digest.all_finished() || digest.scenario->train.max_steps) return std::nullopt;
  const auto epochs = read_epochs(digest);
  const std::int64_t dataset = digest.ranks.front().report->dataset_samples;
  for (const auto& [number, epoch] : epochs) {
    const bool whole = epoch.complete && epoch.by_rank.size() == digest.ranks.size();
    if (!whole) return std::nullopt;  // more samples than are kept: nothing can be said
    if (auto found = find_overlap(digest, number, epoch, dataset)) return found;
  }
  return find_same_order(digest, epochs);
}

std::optional<Diagnosis> find_padding(const Digest& digest) {
  if (!digest.all_finished() || digest.scenario->train.max_steps) return std::nullopt;
  const auto epochs = read_epochs(digest);
  if (epochs.empty()) return std::nullopt;
  const Epoch& epoch = epochs.begin()->second;
  const bool whole = epoch.complete && epoch.by_rank.size() == digest.ranks.size();
  if (!whole || cover(epoch).drawn == cover(epoch).distinct) return std::nullopt;
  // A sampler deals one list over the ranks in turn, and what pads it stands at its end: the draw
  // that comes later in the list is the repetition.
  std::map<std::int64_t, std::size_t> place_by_sample;
  std::vector<std::pair<std::size_t, std::int64_t>> repeated;  // place in the list, sample
  for (const auto& [rank, indices] : epoch.by_rank) {
    for (std::size_t i = 0; i < indices->size(); ++i) {
      const std::size_t place = i * digest.ranks.size() + static_cast<std::size_t>(rank);
      const auto [first, added] = place_by_sample.try_emplace((*indices)[i], place);
      if (added) continue;
      repeated.emplace_back(std::max(first->second, place), (*indices)[i]);
      first->second = std::min(first->second, place);
    }
  }
  std::sort(repeated.begin(), repeated.end());
  Diagnosis diagnosis;
  diagnosis.verdict = "clean";
  diagnosis.kind = "samples_padded";
  diagnosis.catalog = "K10";
  std::string samples;
  constexpr std::size_t kShown = 4;
  for (std::size_t i = 0; i < repeated.size(); ++i) {
    diagnosis.ranks.push_back(static_cast<int>(repeated[i].first % digest.ranks.size()));
    if (i < kShown) samples += fmt::format("{}{}", i == 0 ? "" : ", ", repeated[i].second);
  }
  if (repeated.size() > kShown) samples += fmt::format(" and {} more", repeated.size() - kShown);
  std::sort(diagnosis.ranks.begin(), diagnosis.ranks.end());
  diagnosis.ranks.erase(std::unique(diagnosis.ranks.begin(), diagnosis.ranks.end()),
                        diagnosis.ranks.end());
  diagnosis.because = fmt::format(
      "padding, by design: epoch {} drew {} of {} samples twice ({}), the second time on {}, so "
      "that all ranks take equally many steps",
      epochs.begin()->first, repeated.size(), digest.ranks.front().report->dataset_samples, samples,
      rank_list(diagnosis.ranks));
  diagnosis.first_cause = diagnosis.because;
  diagnosis.first_symptom =
      "none in training; a metric that is summed over all draws counts them twice";
  diagnosis.fix =
      "nothing for a training; in an evaluation leave out the draws behind the data set's size, or "
      "set sampler.pad to false where no collective depends on equal steps";
  return diagnosis;
}

std::optional<Diagnosis> find_wrong_clip(const Digest& digest) {
  if (!digest.all_finished()) return std::nullopt;
  Diagnosis diagnosis = silent("", "K09");
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
    diagnosis.kind = "norm_reduced_twice";
    diagnosis.because = fmt::format(
        "in step {} the clip went by a norm of {:.6f}, the gradients' is {:.6f}: {:.6f} times as "
        "much, the root of {} ranks is {:.6f}; they were scaled to {:.6f}",
        first->step, *first->clip_norm, *first->grad_norm, *first->clip_norm / *first->grad_norm,
        digest.ranks.size(), std::sqrt(static_cast<double>(digest.ranks.size())),
        *first->grad_norm * first->clip_coefficient.value_or(1));
    diagnosis.fix =
        "take the norm of the gradients as backward leaves them: DDP has reduced them, so every "
        "rank finds the same and nothing is to be summed";
  } else if (first->unscales > 1) {
    diagnosis.kind = "unscaled_twice";
    diagnosis.because = fmt::format(
        "in step {} gradients were divided by the loss scale {} {} times: in a micro step that is "
        "not reduced, and again after the last",
        first->step, first->loss_scale, first->unscales);
    diagnosis.fix = "unscale and clip once a step, after the micro step that is reduced";
  } else {
    diagnosis.kind = "clipped_before_unscale";
    diagnosis.because = fmt::format(
        "in step {} gradients were clipped while they were {} times too large: the limit was held "
        "against a scaled norm of {:.6f}",
        first->step, first->scale_at_clip, first->grad_norm.value_or(0));
    diagnosis.fix = "divide by the loss scale first (GradScaler.unscale_), then clip";
  }
  diagnosis.first_cause = diagnosis.because;
  return diagnosis;
}

std::optional<Diagnosis> find_uneven_batches(const Digest& digest) {
  if (!digest.all_finished() || digest.scenario->ddp.join.enable) return std::nullopt;
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
    Diagnosis diagnosis = silent("uneven_batches", "K13");
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
    diagnosis.fix =
        "give every rank as many samples in a step (sampler.pad or sampler.drop_last), or weigh "
        "each "
        "rank's loss by world size * its samples / all samples";
    return diagnosis;
  }
  return std::nullopt;
}

}  // namespace gradsync::diagnosis
