#pragma once

#include <cstdint>
#include <vector>

#include "gradsync/data/sampler_options.hpp"

namespace gradsync {

/// Which samples a rank sees in an epoch: torch.utils.data.DistributedSampler, index for index.
///
/// The order of an epoch is randperm(n) of a generator seeded with seed + epoch (or 0..n-1), made
/// divisible by the number of ranks (repeated from its start, or cut with drop_last), and rank r
/// takes every num_replicas-th index from r on.
class DistributedSampler {
 public:
  /// Throws Error(kMisuse): PyTorch's rule first (0 <= rank < num_replicas), then a negative
  /// dataset size, then shard sizes that are not one a rank, negative or more than there are
  /// samples.
  DistributedSampler(std::int64_t dataset_size, int num_replicas, int rank,
                     SamplerOptions options = {});

  /// The epoch whose order `indices` gives; without it every epoch has that of epoch 0.
  void set_epoch(std::int64_t epoch) noexcept { epoch_ = epoch; }
  std::int64_t epoch() const noexcept { return epoch_; }

  std::vector<std::int64_t> indices() const;
  /// How many indices this rank gets; the same in every epoch.
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
