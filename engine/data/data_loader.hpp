#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "gradsync/data/dataset.hpp"
#include "gradsync/data/distributed_sampler.hpp"

namespace gradsync {

/// Iterates over one rank's share of the data in sampler order; the last batch of an epoch may be
/// smaller (torch.utils.data.DataLoader with drop_last=False). Belongs to one rank.
class DataLoader {
 public:
  /// `dataset` and `device` must outlive the loader. Throws Error(kMisuse) unless batch_size >= 1.
  DataLoader(const Dataset& dataset, DistributedSampler sampler, std::int64_t batch_size,
             Device& device);

  /// Rewinds to the first batch of `epoch`, in the sampler's order for that epoch.
  void start_epoch(std::int64_t epoch);
  /// The next batch, or nothing at the end of the epoch.
  std::optional<Batch> next();

  /// Batches left in this epoch.
  std::int64_t batches_left() const noexcept;
  /// ceil(samples of this rank / batch size); the same in every epoch.
  std::int64_t batches_per_epoch() const noexcept;
  const DistributedSampler& sampler() const noexcept { return sampler_; }

 private:
  const Dataset* dataset_;
  DistributedSampler sampler_;
  std::int64_t batch_size_;
  Device* device_;
  std::vector<std::int64_t> order_;
  std::size_t position_ = 0;
};

}  // namespace gradsync
