#pragma once

#include <cstdint>

namespace gradsync {

/// PyTorch's PowerSGDState, with its defaults.
struct PowerSgdOptions {
  std::int64_t matrix_approximation_rank = 1;
  /// Number of initial iterations with plain all-reduce. At least 2 with error feedback or warm
  /// start, because the buckets are rebuilt before the second iteration.
  std::int64_t start_powerSGD_iter = 1000;
  /// A gradient of n x m is compressed if (n + m) * rank * min_compression_rate < n * m.
  double min_compression_rate = 2;
  bool use_error_feedback = true;  ///< add the compression error to the next gradient
  bool warm_start = true;          ///< start from the matrices of the last iteration
  double orthogonalization_epsilon = 0;
  std::uint64_t random_seed = 0;
  bool operator==(const PowerSgdOptions&) const = default;
};

}  // namespace gradsync
