#pragma once

#include <optional>

#include "engine/core/pytorch_version.hpp"

namespace gradsync {

/// Options of DistributedDataParallel, under PyTorch's names and with its defaults.
struct DdpOptions {
  /// MiB, may be fractional; unset is PyTorch's None: 25 MiB with a first bucket of 1 MiB. A value
  /// given explicitly is the first bucket's cap as well (pytorch/pytorch#121640); before that
  /// change the first bucket was always 1 MiB.
  std::optional<double> bucket_cap_mb = {};
  /// Gradients are views into the buckets: no copy back, and no second copy in memory.
  bool gradient_as_bucket_view = false;
  PytorchVersion pytorch_version = {};
};

}  // namespace gradsync
