#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "gradsync/autograd/parameter.hpp"
#include "gradsync/ddp/comm_hook.hpp"

namespace gradsync {

/// A parameter's place in a bucket.
struct BucketSlot {
  std::size_t parameter;  ///< index of the parameter in the reducer
  std::int64_t offset;    ///< in elements
  Tensor view;            ///< of the bucket's tensor, in the parameter's shape
};

/// A flat tensor in which the gradients of some parameters are reduced together.
struct Bucket {
  Tensor gradients;  ///< uninitialized until the gradients are copied in
  std::vector<BucketSlot> slots;
  std::shared_ptr<const std::vector<std::string>> names;  ///< parameter names, in slot order
  std::size_t pending = 0;  ///< gradients still missing in this iteration
  BucketFuture future;      ///< set from launch to finalization
};

/// Where a parameter's gradient is stored.
struct BucketLocation {
  std::size_t bucket;
  std::size_t slot;
};

/// Allocates buckets for a partition of the parameters, keeping the given order within each bucket.
std::vector<Bucket> make_buckets(const std::vector<ParameterPtr>& parameters,
                                 const std::vector<std::vector<std::size_t>>& assignment);

/// The location of every parameter, by index. Throws Error(kInternal) unless each is in exactly one
/// bucket.
std::vector<BucketLocation> locate_parameters(const std::vector<Bucket>& buckets,
                                              std::size_t parameter_count);

}  // namespace gradsync
