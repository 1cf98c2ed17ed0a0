#include "gradsync/ddp/bucket_plan.hpp"

#include <algorithm>
#include <numeric>

#include "gradsync/core/error.hpp"

namespace gradsync {
namespace {

/// The bucket being filled for one (dtype, device), and that key's position in the limits.
struct OpenBucket {
  DType dtype;
  int device;
  std::vector<std::size_t> tensors;
  Bytes size = 0;
  std::size_t limit = 0;
};

void check(bool condition, const char* message) {
  if (!condition) throw Error(ErrorCode::kInternal, message);
}

void sort_by_smallest_index(BucketAssignment& assignment) {
  std::vector<std::size_t> order(assignment.buckets.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::ranges::min(assignment.buckets[a]) < std::ranges::min(assignment.buckets[b]);
  });
  BucketAssignment sorted;
  for (const std::size_t i : order) {
    sorted.buckets.push_back(std::move(assignment.buckets[i]));
    sorted.limits.push_back(assignment.limits[i]);
  }
  assignment = std::move(sorted);
}

}  // namespace

BucketAssignment compute_bucket_assignment_by_size(std::span<const BucketTensor> tensors,
                                                   std::span<const Bytes> limits,
                                                   const std::vector<bool>& expect_sparse_gradient,
                                                   std::span<const std::int64_t> tensor_indices) {
  check(!tensors.empty(), "bucket assignment of no tensors");
  check(!limits.empty(), "bucket assignment without a size limit");
  check(expect_sparse_gradient.empty() || expect_sparse_gradient.size() == tensors.size(),
        "bucket assignment: one sparse flag a tensor is needed");
  check(tensor_indices.empty() || tensor_indices.size() == tensors.size(),
        "bucket assignment: one index a tensor is needed");

  BucketAssignment result;
  const auto emit = [&](std::vector<std::size_t> bucket, Bytes limit) {
    result.buckets.push_back(std::move(bucket));
    result.limits.push_back(limit);
  };

  std::vector<OpenBucket> open;  // in order of first use; few keys
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const BucketTensor& tensor = tensors[i];
    const std::size_t index =
        tensor_indices.empty() ? i : static_cast<std::size_t>(tensor_indices[i]);
    if (!expect_sparse_gradient.empty() && expect_sparse_gradient.at(index)) {
      emit({index}, 0);
      continue;
    }

    auto bucket = std::ranges::find_if(open, [&](const OpenBucket& b) {
      return b.dtype == tensor.dtype && b.device == tensor.device;
    });
    if (bucket == open.end()) {
      open.push_back({tensor.dtype, tensor.device, {}, 0, 0});
      bucket = open.end() - 1;
    }
    bucket->tensors.push_back(index);
    bucket->size += tensor.numel * static_cast<Bytes>(element_size(tensor.dtype));
    if (bucket->size >= limits[bucket->limit]) {
      emit(std::move(bucket->tensors), limits[bucket->limit]);
      bucket->tensors.clear();
      bucket->size = 0;
      if (bucket->limit + 1 < limits.size()) ++bucket->limit;
    }
  }
  for (auto bucket = open.rbegin(); bucket != open.rend(); ++bucket) {
    if (!bucket->tensors.empty()) emit(std::move(bucket->tensors), limits[bucket->limit]);
  }

  if (tensor_indices.empty()) sort_by_smallest_index(result);
  return result;
}

}  // namespace gradsync
