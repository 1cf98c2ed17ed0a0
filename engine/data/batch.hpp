#pragma once

#include <cstdint>
#include <vector>

#include "gradsync/tensor/named_tensors.hpp"

namespace gradsync {

/// What a model is given for one forward pass on one rank. The data set decides which tensors there
/// are, and the model reads them by name; nothing between the two looks at them.
struct Batch {
  /// Positions in the data set, in order, as the sampler gave them; set by the DataLoader.
  std::vector<std::int64_t> sample_indices;
  /// Inputs and targets, one row a sample, on the model's device. The token data sets have "tokens"
  /// and "targets"; there are none where a model needs only the indices (replayed models).
  NamedTensors tensors;
  /// Optimizer steps so far; set by the training loop (synthetic gradients depend on it).
  std::int64_t global_step = 0;
};

}  // namespace gradsync
