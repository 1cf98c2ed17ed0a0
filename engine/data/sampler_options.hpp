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
  /// False: the order is dealt out as it is, so ranks differ by a sample when the size is no
  /// multiple of the number of ranks. PyTorch has no such mode; hand-written samplers do, and hang
  /// with it.
  bool pad = true;
  /// Samples of each rank; not empty: rank r takes the next shard_sizes[r] samples of the
  /// (shuffled) order, contiguously, and `pad` and `drop_last` have no meaning.
  std::vector<std::int64_t> shard_sizes = {};
  PytorchVersion pytorch_version =
      {};  ///< 2.7 shuffles sets of 2^32 / 20 samples and more differently
  bool operator==(const SamplerOptions&) const = default;
};

}  // namespace gradsync
