#pragma once

#include "gradsync/ddp/comm_hook.hpp"
#include "gradsync/ddp/power_sgd_options.hpp"

namespace gradsync {

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
