#pragma once

#include <cstdint>
#include <vector>

#include "gradsync/tensor/named_tensors.hpp"

namespace gradsync {

/// The input of one forward pass on one rank. The dataset chooses the tensors and the model reads
/// them by name; nothing in between looks at them.
struct Batch {
  /// Positions in the dataset, in sampler order; set by the DataLoader.
  std::vector<std::int64_t> sample_indices;
  /// Inputs and targets, one row per sample, on the model's device. The token datasets provide
  /// "tokens" and "targets"; models that need only the indices (replayed models) get none.
  NamedTensors tensors;
  /// Optimizer steps so far; set by the training loop (synthetic gradients depend on it).
  std::int64_t global_step = 0;
};

}  // namespace gradsync
