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
/// bucket_cap_mb's default, 25 MiB.
inline constexpr Bytes kDefaultBucketCapBytes = 25 * 1024 * 1024;

/// What the assignment needs to know of a tensor. Tensors of different dtype or device never share
/// a bucket.
struct BucketTensor {
  std::int64_t numel = 0;
  DType dtype = DType::kFloat32;
  int device = 0;  ///< any numbering of devices
};

/// A partition of tensors into buckets, each with the limit under which it was filled (0 for a
/// sparse tensor's own bucket).
struct BucketAssignment {
  std::vector<std::vector<std::size_t>> buckets;
  std::vector<Bytes> limits;
};

/// PyTorch's compute_bucket_assignment_by_size. Walks the tensors in order and adds each to the
/// open bucket of its (dtype, device); the bucket closes once it has reached its limit, so it may
/// exceed it by part of the last tensor, which is never split. Each (dtype, device) uses the limits
/// one after another and repeats the last.
///
/// `tensor_indices`: the tensors are given in arrival order and tensor i is known as
/// tensor_indices[i]; the result then keeps the order in which buckets closed, followed by those
/// still open, that of the (dtype, device) seen last first (PyTorch iterates over a hash map there,
/// which with libstdc++ and a few keys gives this order). Without it the tensors are 0, 1, ... and
/// the buckets are sorted by smallest index.
///
/// `expect_sparse_gradient`, by tensor index: such a tensor gets a bucket of its own at once.
///
/// Throws Error(kInternal) for no tensors, no limits, or lists whose lengths differ.
BucketAssignment compute_bucket_assignment_by_size(
    std::span<const BucketTensor> tensors, std::span<const Bytes> limits,
    const std::vector<bool>& expect_sparse_gradient = {},
    std::span<const std::int64_t> tensor_indices = {});

}  // namespace gradsync
