#pragma once

#include <cstdint>
#include <vector>

#include "gradsync/data/sampler_options.hpp"

namespace gradsync {

/// Selects the samples of each rank in an epoch: torch.utils.data.DistributedSampler, index for
/// index.
///
/// The order of an epoch is randperm(n) from a generator seeded with seed + epoch (or 0..n-1
/// without shuffling), made divisible by the number of ranks (padded from its start, or cut with
/// drop_last). Rank r takes every num_replicas-th index, starting at r.
class DistributedSampler {
 public:
  /// Throws Error(kMisuse), checking in this order: PyTorch's rule (0 <= rank < num_replicas), a
  /// negative dataset size, shard sizes that are negative, not one per rank, or larger in sum than
  /// the dataset.
  DistributedSampler(std::int64_t dataset_size, int num_replicas, int rank,
                     SamplerOptions options = {});

  /// Selects the epoch for `indices`. If never called, every epoch uses the order of epoch 0.
  void set_epoch(std::int64_t epoch) noexcept { epoch_ = epoch; }
  std::int64_t epoch() const noexcept { return epoch_; }

  std::vector<std::int64_t> indices() const;
  /// The number of indices of this rank; the same in every epoch.
  std::int64_t num_samples() const noexcept { return num_samples_; }
  /// Over all ranks.
  std::int64_t total_size() const noexcept { return total_size_; }

 private:
  std::int64_t dataset_size_;
  int num_replicas_;
  int rank_;
  SamplerOptions options_;
  std::int64_t num_samples_ = 0;
  std::int64_t total_size_ = 0;
  std::int64_t epoch_ = 0;
};

}  // namespace gradsync
