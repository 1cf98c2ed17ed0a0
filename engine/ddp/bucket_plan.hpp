#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "gradsync/core/units.hpp"
#include "gradsync/tensor/dtype.hpp"

namespace gradsync {

/// PyTorch's kDefaultFirstBucketBytes: small, so that the first all-reduce starts early in
/// backward.
inline constexpr Bytes kDefaultFirstBucketBytes = 1024 * 1024;
/// Default of bucket_cap_mb, 25 MiB.
inline constexpr Bytes kDefaultBucketCapBytes = 25 * 1024 * 1024;

/// The properties of a tensor that the bucket assignment uses. Tensors of different dtype or device
/// never share a bucket.
struct BucketTensor {
  std::int64_t numel = 0;
  DType dtype = DType::kFloat32;
  int device = 0;  ///< arbitrary device number
};

/// A partition of tensors into buckets, each with the size limit under which it was filled (0 for
/// the bucket of a sparse tensor).
struct BucketAssignment {
  std::vector<std::vector<std::size_t>> buckets;
  std::vector<Bytes> limits;
};

/// PyTorch's compute_bucket_assignment_by_size. Walks the tensors in order and adds each to the
/// open bucket of its (dtype, device). A bucket closes once it reaches its limit, so it may exceed
/// the limit by part of its last tensor, which is never split. Each (dtype, device) uses the limits
/// one after another and repeats the last one.
///
/// `tensor_indices`: if given, the tensors are in arrival order and tensor i is called
/// tensor_indices[i]; the result lists the buckets in closing order, followed by the open ones,
/// in reverse order of first use of their (dtype, device). (PyTorch iterates over a hash map here;
/// libstdc++ yields this order for a few keys.) If empty, the tensors are called 0, 1, ... and the
/// buckets are sorted by smallest index.
///
/// `expect_sparse_gradient`, by tensor index: such a tensor gets its own bucket immediately.
///
/// Throws Error(kInternal) for no tensors, no limits, or lists of different lengths.
BucketAssignment compute_bucket_assignment_by_size(
    std::span<const BucketTensor> tensors, std::span<const Bytes> limits,
    const std::vector<bool>& expect_sparse_gradient = {},
    std::span<const std::int64_t> tensor_indices = {});

}  // namespace gradsync
