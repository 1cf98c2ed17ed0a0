#pragma once

#include <cstdint>
#include <vector>

#include "gradsync/core/pytorch_version.hpp"

namespace gradsync {

/// Options of DistributedSampler, under PyTorch's names and with its defaults.
struct SamplerOptions {
  bool shuffle = true;
  std::uint64_t seed = 0;
  bool drop_last = false;
  /// If false, the order is neither padded nor cut, so ranks differ by one sample when the dataset
  /// size is not a multiple of the number of ranks. PyTorch has no such mode, but hand-written
  /// samplers do, and they hang.
  bool pad = true;
  /// Samples of each rank. If not empty, rank r takes the next shard_sizes[r] consecutive samples
  /// of the (shuffled) order, and `pad` and `drop_last` are ignored.
  std::vector<std::int64_t> shard_sizes = {};
  PytorchVersion pytorch_version =
      {};  ///< 2.7 shuffles datasets of 2^32 / 20 samples or more differently
  bool operator==(const SamplerOptions&) const = default;
};

}  // namespace gradsync
