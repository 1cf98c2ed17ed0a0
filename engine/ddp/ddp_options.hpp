#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gradsync/core/pytorch_version.hpp"
#include "gradsync/core/units.hpp"
#include "gradsync/ddp/bucket_plan.hpp"
#include "gradsync/ddp/gradient_mean.hpp"

namespace gradsync {

/// Options of DistributedDataParallel, under PyTorch's names and with its defaults.
struct DdpOptions {
  /// In MiB, may be fractional. Unset is PyTorch's None: 25 MiB with a first bucket of 1 MiB. Since
  /// 2.4 (pytorch/pytorch#121640) an explicit value also caps the first bucket; before 2.4 the
  /// first bucket was always 1 MiB.
  std::optional<double> bucket_cap_mb = {};
  /// PyTorch's dist._DEFAULT_FIRST_BUCKET_BYTES: the first bucket's cap if it differs from
  /// bucket_cap_mb.
  Bytes first_bucket_bytes = kDefaultFirstBucketBytes;
  /// In MiB: the first bucket's cap, whatever bucket_cap_mb is. PyTorch has no such option: there,
  /// lower dist._DEFAULT_FIRST_BUCKET_BYTES and, since 2.4, leave bucket_cap_mb at None.
  std::optional<double> first_bucket_cap_mb = {};
  /// Gradients are views into the buckets, which saves the copy back and a second copy in memory.
  bool gradient_as_bucket_view = false;
  /// Walk the graph from the outputs after every forward and mark unreachable parameters as ready.
  /// Disables the bucket rebuild.
  bool find_unused_parameters = false;
  /// The graph never changes after the first iteration, so parameters may be unused or used several
  /// times without a walk.
  bool static_graph = false;
  /// Broadcast rank 0's buffers before each forward (in a join, those of the highest rank that
  /// still trains). If false, since 2.1 (pytorch/pytorch#100729), buffers are not broadcast at
  /// construction or at the end of a join either.
  bool broadcast_buffers = true;
  /// Names of parameters and buffers that DDP ignores: neither broadcast nor reduced (PyTorch's
  /// _set_params_and_buffers_to_ignore_for_model).
  std::vector<std::string> params_and_buffers_to_ignore = {};
  PytorchVersion pytorch_version = {};
  /// Not an option of PyTorch's DDP, which always predivides. With kAverage, gradients are copied
  /// into the buckets unscaled, and the group must support ReduceOp::kAverage. Incompatible with
  /// communication hooks and with joins that divide by the number of active ranks.
  GradientMean gradient_mean = GradientMean::kPredivide;
  bool operator==(const DdpOptions&) const = default;
};

/// Bucket size limits in bytes: of the first bucket, and of all others.
struct BucketCaps {
  Bytes first;
  Bytes others;
};

/// Resolves `bucket_cap_mb`, `first_bucket_cap_mb` and `pytorch_version`. Throws Error(kMisuse)
/// unless the caps are positive.
BucketCaps bucket_caps(const DdpOptions& options);

}  // namespace gradsync
