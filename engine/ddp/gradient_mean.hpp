#pragma once

namespace gradsync {

/// Where the sum of the gradients is divided to give the mean.
enum class GradientMean {
  kPredivide,  ///< gradients are scaled by 1/world when copied into the bucket (PyTorch's DDP)
  kAverage,    ///< the collective averages (ncclAvg; Megatron's average_in_collective)
};

}  // namespace gradsync
