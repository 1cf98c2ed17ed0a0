#include "gradsync/testbed/diagnosis/shards.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "gradsync/core/rank_list.hpp"
#include "gradsync/testbed/diagnosis/sentences.hpp"
#include "gradsync/testbed/scenario/shard_plan.hpp"

namespace gradsync::diagnosis {
namespace {

std::int64_t steps_of(std::int64_t samples, std::int64_t samples_per_step) {
  return (samples + samples_per_step - 1) / samples_per_step;
}

std::int64_t samples_per_step(const Scenario& scenario) {
  return scenario.train.batch_size * scenario.train.accumulate_steps;
}

/// Size of the dataset, from a rank's report or the scenario; 0 if neither has it.
std::int64_t dataset_size(const Digest& digest) {
  for (const RankView& view : digest.ranks) {
    if (view.report != nullptr && view.report->dataset_samples > 0) {
      return view.report->dataset_samples;
    }
  }
  const DataSpec& data = digest.scenario->data;
  return data.has_known_size() ? data.samples : 0;
}

/// The scenario's shard for a rank without a report; nullopt if the sampler cannot tell.
std::optional<ShardPlan> plan_of(const Scenario& scenario, std::int64_t size, int rank, int world) {
  if (size <= 0) return std::nullopt;
  try {
    return plan_shard(scenario, size, rank, world);
  } catch (const Error&) {
    return std::nullopt;  // shard sizes that contradict the reports
  }
}

}  // namespace

std::vector<Shard> read_shards(const Digest& digest) {
  const Scenario& scenario = *digest.scenario;
  const std::int64_t size = dataset_size(digest);
  const int world = static_cast<int>(digest.ranks.size());
  std::vector<Shard> shards;
  for (const RankView& view : digest.ranks) {
    Shard shard;
    shard.rank = view.rank;
    if (view.report != nullptr && view.report->dataset_samples > 0) {
      shard.samples = view.report->samples_planned;
      shard.steps = view.report->steps_planned;
      shard.steps_per_epoch = steps_of(shard.samples, samples_per_step(scenario));
      shard.known = true;
    } else if (const auto plan = digest.gaps.scenario ? std::nullopt
                                                      : plan_of(scenario, size, view.rank, world)) {
      shard.samples = plan->samples;
      shard.steps = plan->steps;
      shard.steps_per_epoch = plan->steps_per_epoch;
      shard.known = true;
    }
    shards.push_back(shard);
  }
  return shards;
}

std::string describe_shards(const Digest& digest, const std::vector<Shard>& shards) {
  const Scenario& scenario = *digest.scenario;
  std::string how = " dealt by DistributedSampler";
  if (!scenario.sampler.shard_sizes.empty()) {
    how = " in shards of given sizes";
  } else if (!scenario.sampler.pad) {
    how = " without padding";
  }
  std::string text =
      fmt::format("{} over {} ranks{}, batch size {}: ", count_of(dataset_size(digest), "sample"),
                  digest.ranks.size(), how, scenario.train.batch_size);
  std::map<std::int64_t, std::vector<int>, std::greater<>> ranks_by_samples;
  for (const Shard& shard : shards) {
    if (shard.known) ranks_by_samples[shard.samples].push_back(shard.rank);
  }
  constexpr std::size_t kShown = 4;
  std::size_t shown = 0;
  for (const auto& [samples, ranks] : ranks_by_samples) {
    if (shown > 0) text += "; ";
    if (shown == kShown) {
      text += fmt::format("and {} more sizes", ranks_by_samples.size() - kShown);
      break;
    }
    const std::int64_t steps = steps_of(samples, samples_per_step(scenario));
    text += fmt::format("{} {} {}, which {} {}", rank_list(ranks), verb(ranks, "has", "have"),
                        count_of(samples, "sample"), samples == 1 ? "makes" : "make",
                        count_of(steps, "step"));
    ++shown;
  }
  if (scenario.train.epochs > 1) {
    text += fmt::format(" in each of {} epochs", scenario.train.epochs);
  }
  return text;
}

std::string fix_for_shards(const Digest& digest, const std::vector<Shard>& shards) {
  const Scenario& scenario = *digest.scenario;
  const auto world = static_cast<std::int64_t>(digest.ranks.size());
  const std::int64_t size = dataset_size(digest);
  const std::int64_t batch = samples_per_step(scenario);
  const std::string per_epoch = scenario.train.epochs > 1 ? " an epoch" : "";

  if (!scenario.sampler.shard_sizes.empty()) {
    const auto smallest = std::min_element(
        shards.begin(), shards.end(),
        [](const Shard& a, const Shard& b) { return a.steps_per_epoch < b.steps_per_epoch; });
    return fmt::format(
        "give every rank equally many samples in sampler.shard_sizes ({} is what the smallest "
        "shard "
        "has), or remove it: DistributedSampler then pads the shards to {}{}",
        smallest->samples, count_of(steps_of((size + world - 1) / world, batch), "step"),
        per_epoch);
  }
  const std::int64_t padded = (size + world - 1) / world;
  const std::int64_t cut = size / world;
  const std::int64_t repeated = padded * world - size;
  const std::int64_t unused = size - cut * world;
  std::string text = fmt::format("set sampler.pad to true: {} on every rank, {} repeated{}",
                                 count_of(steps_of(padded, batch), "step"),
                                 count_of(repeated, "sample"), per_epoch);
  if (cut > 0) {
    text +=
        fmt::format("; or set sampler.drop_last to true: {} on every rank, {} of {} {} unused{}",
                    count_of(steps_of(cut, batch), "step"), unused, count_of(size, "sample"),
                    unused == 1 ? "is" : "are", per_epoch);
  }
  text +=
      "; or set ddp.join.enable to true: ranks that run out then answer the others with zeros, as "
      "PyTorch's Join does";
  return text;
}

}  // namespace gradsync::diagnosis
