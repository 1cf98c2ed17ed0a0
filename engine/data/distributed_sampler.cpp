#include "gradsync/data/distributed_sampler.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "gradsync/core/error.hpp"
#include "gradsync/data/randperm.hpp"

namespace gradsync {
namespace {

std::int64_t ceil_divide(std::int64_t a, std::int64_t b) {
  return a / b + (a % b != 0 ? 1 : 0);
}

void check_shards(const std::vector<std::int64_t>& shards, std::int64_t dataset_size,
                  int num_replicas) {
  if (shards.size() != static_cast<std::size_t>(num_replicas)) {
    throw Error(ErrorCode::kMisuse,
                fmt::format("DistributedSampler: {} shard sizes for {} ranks; give one a rank",
                            shards.size(), num_replicas));
  }
  std::int64_t left = dataset_size;
  for (std::size_t r = 0; r < shards.size(); ++r) {
    if (shards[r] < 0 || shards[r] > left) {
      throw Error(
          ErrorCode::kMisuse,
          fmt::format("DistributedSampler: rank {}'s shard of {} samples: expected 0 to {}, "
                      "what the ranks before leave of {} samples",
                      r, shards[r], left, dataset_size));
    }
    left -= shards[r];
  }
}

}  // namespace

DistributedSampler::DistributedSampler(std::int64_t dataset_size, int num_replicas, int rank,
                                       SamplerOptions options)
    : dataset_size_(dataset_size),
      num_replicas_(num_replicas),
      rank_(rank),
      options_(std::move(options)) {
  if (rank >= num_replicas || rank < 0) {
    throw Error(ErrorCode::kMisuse,
                fmt::format("DistributedSampler: invalid rank {}, rank should be in the interval "
                            "[0, {}]",
                            rank, num_replicas - 1));
  }
  if (dataset_size < 0) {
    throw Error(ErrorCode::kMisuse,
                fmt::format("DistributedSampler: a data set of {} samples", dataset_size));
  }
  const auto& shards = options_.shard_sizes;
  if (!shards.empty()) {
    check_shards(shards, dataset_size, num_replicas);
    num_samples_ = shards[static_cast<std::size_t>(rank)];
    total_size_ = std::accumulate(shards.begin(), shards.end(), std::int64_t{0});
  } else if (options_.drop_last) {
    num_samples_ = dataset_size / num_replicas;
    total_size_ = num_samples_ * num_replicas;
  } else if (options_.pad) {
    num_samples_ = ceil_divide(dataset_size, num_replicas);
    total_size_ = num_samples_ * num_replicas;
  } else {
    num_samples_ = rank < dataset_size ? ceil_divide(dataset_size - rank, num_replicas) : 0;
    total_size_ = dataset_size;
  }
}

std::vector<std::int64_t> DistributedSampler::indices() const {
  std::vector<std::int64_t> order;  // empty: the order of the data set
  if (options_.shuffle) {
    const auto epoch = static_cast<std::uint64_t>(epoch_);
    if (epoch_ >= 0 && options_.seed > std::numeric_limits<std::uint64_t>::max() - epoch) {
      throw Error(ErrorCode::kMisuse,
                  fmt::format("DistributedSampler: seed {} + epoch {} is not below 2^64",
                              options_.seed, epoch_));
    }
    Generator generator(options_.seed + epoch);
    order = randperm(dataset_size_, generator, options_.pytorch_version);
  }
  const auto sample_at = [&order](std::int64_t position) {
    return order.empty() ? position : order[static_cast<std::size_t>(position)];
  };

  std::vector<std::int64_t> mine(static_cast<std::size_t>(num_samples_));
  if (!options_.shard_sizes.empty()) {
    const auto begin = std::accumulate(options_.shard_sizes.begin(),
                                       options_.shard_sizes.begin() + rank_, std::int64_t{0});
    for (std::size_t i = 0; i < mine.size(); ++i) {
      mine[i] = sample_at(begin + static_cast<std::int64_t>(i));
    }
    return mine;
  }
  // Position p of the padded order is order[p mod n]: PyTorch repeats the order from its start.
  for (std::size_t i = 0; i < mine.size(); ++i) {
    const std::int64_t position = static_cast<std::int64_t>(i) * num_replicas_ + rank_;
    mine[i] = sample_at(position % dataset_size_);
  }
  return mine;
}

}  // namespace gradsync
