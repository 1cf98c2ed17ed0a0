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
  /// MiB, may be fractional; unset is PyTorch's None: 25 MiB with a first bucket of 1 MiB.
  /// Since 2.4 (pytorch/pytorch#121640) a value given explicitly is the first bucket's cap as well;
  /// before, the first bucket was always 1 MiB.
  std::optional<double> bucket_cap_mb = {};
  /// PyTorch's dist._DEFAULT_FIRST_BUCKET_BYTES: the first bucket's cap where it has one of its
  /// own.
  Bytes first_bucket_bytes = kDefaultFirstBucketBytes;
  /// MiB: the first bucket's cap whatever bucket_cap_mb is. PyTorch has no such option: there it
  /// takes dist._DEFAULT_FIRST_BUCKET_BYTES and, since 2.4, a bucket_cap_mb that is left at None.
  std::optional<double> first_bucket_cap_mb = {};
  /// Gradients are views into the buckets: no copy back, and no second copy in memory.
  bool gradient_as_bucket_view = false;
  /// Walk the graph from the outputs after every forward: parameters that it does not reach count
  /// as ready. The buckets are never rebuilt then.
  bool find_unused_parameters = false;
  /// The graph of the first iteration is that of all: parameters may be unused or used several
  /// times without a walk.
  bool static_graph = false;
  /// Make the buffers those of rank 0 before each forward (in a join, of the highest rank that
  /// still trains). Since 2.1 (pytorch/pytorch#100729) without it buffers are not broadcast at
  /// construction and at the end of a join either.
  bool broadcast_buffers = true;
  /// Names of parameters and buffers that DDP leaves alone: neither broadcast nor reduced
  /// (PyTorch's _set_params_and_buffers_to_ignore_for_model).
  std::vector<std::string> params_and_buffers_to_ignore = {};
  PytorchVersion pytorch_version = {};
  /// No option of PyTorch's, whose DDP predivides. With kAverage gradients go into the buckets as
  /// they are, and the group must know ReduceOp::kAverage; a communication hook, and a join that
  /// divides by the ranks that still train, do not go with it.
  GradientMean gradient_mean = GradientMean::kPredivide;
  bool operator==(const DdpOptions&) const = default;
};

/// Limits of the buckets, in bytes: of the first, and of all others.
struct BucketCaps {
  Bytes first;
  Bytes others;
};

/// What `bucket_cap_mb`, `first_bucket_cap_mb` and `pytorch_version` come to. Throws Error(kMisuse)
/// unless the caps are positive.
BucketCaps bucket_caps(const DdpOptions& options);

}  // namespace gradsync
