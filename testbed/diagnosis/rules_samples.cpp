#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>

#include "gradsync/core/error.hpp"
#include "gradsync/core/rank_list.hpp"
#include "gradsync/data/distributed_sampler.hpp"
#include "gradsync/testbed/diagnosis/evidence.hpp"
#include "gradsync/testbed/diagnosis/rules.hpp"
#include "gradsync/testbed/diagnosis/sentences.hpp"
#include "gradsync/testbed/scenario/shard_plan.hpp"

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

/// Ranks whose configuration (including the sampler's seed) differs from that of the majority; all
/// if there is no majority, none if it is equal everywhere.
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

/// Ranks that draw more samples twice than padding explains.
std::optional<Diagnosis> find_overlap(const Digest& digest, std::int64_t number, const Epoch& epoch,
                                      std::int64_t dataset) {
  const auto world = std::ssize(digest.ranks);
  const Coverage coverage = cover(epoch);
  const std::int64_t repeated = coverage.drawn - coverage.distinct;
  const std::int64_t padding = world - 1;  // the maximum that DistributedSampler repeats
  if (repeated <= padding) return std::nullopt;
  std::map<std::vector<std::int64_t>, std::vector<int>> ranks_by_list;
  for (const auto& [rank, indices] : epoch.by_rank) ranks_by_list[*indices].push_back(rank);
  const auto largest = std::max_element(
      ranks_by_list.begin(), ranks_by_list.end(),
      [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
  const bool shared = largest->second.size() > 1;
  Diagnosis diagnosis =
      silent(shared ? DiagnosisKind::kSamplesNotSharded : DiagnosisKind::kSamplesOverlap);
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
  return diagnosis;
}

bool begins_with(const std::vector<std::int64_t>& all, const std::vector<std::int64_t>& first) {
  return first.size() <= all.size() && std::equal(first.begin(), first.end(), all.begin());
}

/// The order in which the scenario's sampler assigns an epoch to a rank; empty if it cannot.
std::vector<std::int64_t> dealt_order(const Digest& digest, int rank, std::int64_t epoch) {
  const std::int64_t samples = digest.of(rank).report->dataset_samples;
  try {
    DistributedSampler sampler(samples, static_cast<int>(digest.ranks.size()), rank,
                               digest.scenario->sampler);
    sampler.set_epoch(epoch);
    return sampler.indices();
  } catch (const Error&) {
    return {};  // not the scenario's data
  }
}

/// Ranks that drew epoch `number` in the order of the previous epoch although the sampler orders
/// them differently, as its seed determines. For samples of another sampler, so many must have kept
/// their order that chance does not explain it.
std::vector<int> ranks_in_one_order(const Digest& digest, std::int64_t number, const Epoch& before,
                                    const Epoch& epoch) {
  constexpr double kMostOrders = 13.8;  // ln of a million
  std::vector<int> by_seed, others;
  double orders = 0;  // ln of the number of orders
  for (const auto& [rank, indices] : epoch.by_rank) {
    const auto then = before.by_rank.find(rank);
    const bool same =
        then != before.by_rank.end() && indices->size() > 1 && begins_with(*then->second, *indices);
    if (!same) continue;
    const bool known = begins_with(dealt_order(digest, rank, 0), *then->second) ||
                       begins_with(dealt_order(digest, rank, number - 1), *then->second);
    if (!known) {
      others.push_back(rank);
      orders += std::lgamma(static_cast<double>(indices->size()) + 1);
    } else if (!begins_with(dealt_order(digest, rank, number), *indices)) {
      by_seed.push_back(rank);
    }
  }
  if (!by_seed.empty()) return by_seed;
  return orders > kMostOrders ? others : std::vector<int>{};
}

std::optional<Diagnosis> find_same_order(const Digest& digest,
                                         const std::map<std::int64_t, Epoch>& epochs) {
  if (!digest.scenario->sampler.shuffle || digest.gaps.scenario) return std::nullopt;
  for (const auto& [number, epoch] : epochs) {
    const auto before = epochs.find(number - 1);
    if (before == epochs.end()) continue;
    const std::vector<int> same = ranks_in_one_order(digest, number, before->second, epoch);
    if (same.empty()) continue;
    Diagnosis diagnosis = silent(DiagnosisKind::kSameOrderEveryEpoch);
    diagnosis.ranks = same;
    diagnosis.because = fmt::format(
        "{} drew the samples of epoch {} in the order of epoch {}: the sampler was not told the "
        "epoch",
        rank_list(same), number, number - 1);
    diagnosis.first_cause = diagnosis.because;
    return diagnosis;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Diagnosis> find_wrong_samples(const Digest& digest) {
  if (!digest.all_finished() || digest.scenario->train.max_steps) return std::nullopt;
  const auto epochs = read_epochs(digest);
  const std::int64_t dataset = digest.ranks.front().report->dataset_samples;
  for (const auto& [number, epoch] : epochs) {
    const bool whole = epoch.complete && epoch.by_rank.size() == digest.ranks.size();
    if (!whole) return std::nullopt;  // more samples than are kept: undecidable
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
  // A sampler deals one list to the ranks in turn, with the padding at its end, so the draw that is
  // later in the list is the repetition.
  std::map<std::int64_t, std::size_t> place_by_sample;
  std::vector<std::pair<std::size_t, std::int64_t>> repeated;  // position in the list, sample
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
  Diagnosis diagnosis = make_diagnosis(DiagnosisKind::kSamplesPadded, "clean");
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
  return diagnosis;
}

}  // namespace gradsync::diagnosis
