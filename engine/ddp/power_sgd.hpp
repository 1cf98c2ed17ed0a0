#pragma once

#include "gradsync/ddp/comm_hook.hpp"
#include "gradsync/ddp/power_sgd_options.hpp"

namespace gradsync {

/// PowerSGD (Vogels et al. 2019), torch's powerSGD_hook: reduces each gradient as the product of
/// two low-rank matrices, computed by one step of power iteration. Three all-reduces per bucket:
/// uncompressed tensors (vectors, small matrices), left factors, right factors. The second and
/// third all-reduce are issued when the bucket is waited for, in bucket order. Results agree with
/// PyTorch's up to rounding.
///
/// Throws Error(kMisuse) for options that PyTorch rejects. float32 buckets only.
CommHook power_sgd_hook(const PowerSgdOptions& options = {});

/// Treats the whole bucket as one square matrix: torch's batched_powerSGD_hook. Cheaper and less
/// accurate.
CommHook batched_power_sgd_hook(const PowerSgdOptions& options = {});

}  // namespace gradsync
