#pragma once

#include <cstdint>

#include "gradsync/ddp/comm_hook.hpp"

namespace gradsync {

/// PyTorch's PowerSGDState, with its defaults.
struct PowerSgdOptions {
  std::int64_t matrix_approximation_rank = 1;
  /// So many iterations are reduced in full first. At least 2 with error feedback or warm start:
  /// the buckets are rebuilt before the second one.
  std::int64_t start_powerSGD_iter = 1000;
  /// A gradient of n x m is compressed if (n + m) * rank * min_compression_rate < n * m.
  double min_compression_rate = 2;
  bool use_error_feedback = true;  ///< what compression lost is added to the next gradient
  bool warm_start = true;          ///< start from the last iteration's matrices
  double orthogonalization_epsilon = 0;
  std::uint64_t random_seed = 0;
};

/// PowerSGD (Vogels et al. 2019): gradients travel as products of two thin matrices, found by one
/// step of a power iteration. Three all-reduces a bucket: what is not compressed (vectors, small
/// matrices), the left factors, the right factors. torch's powerSGD_hook; results agree with it to
/// rounding. The second and third all-reduce are issued when the bucket is waited for, in the
/// buckets' order.
///
/// Throws Error(kMisuse) for options that PyTorch refuses. float32 buckets only.
CommHook power_sgd_hook(const PowerSgdOptions& options = {});

/// The whole bucket as one square matrix: torch's batched_powerSGD_hook. Cheaper and less exact.
CommHook batched_power_sgd_hook(const PowerSgdOptions& options = {});

}  // namespace gradsync
