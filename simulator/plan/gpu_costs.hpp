#pragma once

#include "gradsync/core/units.hpp"
#include "gradsync/testbed/scenario/scenario.hpp"

namespace gradsync {

/// What DDP takes from a GPU besides the network: PyTorch's reducer copies every gradient into its
/// bucket and back, with one kernel each way, and NCCL's kernels occupy streaming multiprocessors
/// that compute then lacks. From data sheets only; nothing here is fitted to a training run.
struct GpuCosts {
  Seconds per_gradient{0};      ///< the shortest time of a kernel, per copy
  double seconds_per_byte = 0;  ///< of a copy: one read and one write of GPU memory
  bool copies_back = true;      ///< false with gradient_as_bucket_view
  /// Compute takes this many times as long while a collective is in flight: NCCL has one kernel
  /// block per channel, each of which occupies one multiprocessor.
  double while_communicating = 1;

  Seconds copy_time(Bytes bytes, std::size_t gradients) const {
    return static_cast<double>(gradients) * per_gradient +
           Seconds(static_cast<double>(bytes) * seconds_per_byte);
  }
};

/// Zero for a cluster that Gloo connects: its ranks compute on processors.
GpuCosts gpu_costs(const ClusterSpec& cluster, int ranks, bool gradient_as_bucket_view);

}  // namespace gradsync
