#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>

#include "gradsync/backends/cuda/kernels/launch.cuh"

/// What the kernels over rows and columns share. In an unnamed namespace, as is usual for device
/// code: each source compiles its own.
namespace gradsync::cuda {
namespace {

/// This block's first row or column, and the stride: a grid has at most kMostBlocks blocks.
constexpr std::int64_t kMostBlocks = std::int64_t{1} << 20;
dim3 block_each(std::int64_t count) {
  return dim3(static_cast<unsigned>(std::clamp<std::int64_t>(count, 1, kMostBlocks)));
}

/// Sum of term(i) for i in [0, count), by all threads of a block.
template <typename Math, typename Term>
__device__ Math sum_over(std::int64_t count, Term term) {
  Math sum = 0;
  for (std::int64_t i = threadIdx.x; i < count; i += kThreads) sum += term(i);
  return reduce_block(sum, Plus{});
}
template <typename Math, typename Term>
__device__ Math largest_over(std::int64_t count, Term term) {
  Math largest = -std::numeric_limits<Math>::infinity();
  for (std::int64_t i = threadIdx.x; i < count; i += kThreads) largest = Larger{}(largest, term(i));
  return reduce_block(largest, Larger{});
}

template <typename Function>
void with_type(DType dtype, Function&& function) {
  switch (dtype) {
    case DType::kFloat32:
      return function(float{});
    case DType::kFloat64:
      return function(double{});
    default:
      throw Error(ErrorCode::kInternal,
                  "the layers' kernels compute in float32 and float64, not in " +
                      std::string(to_string(dtype)));
  }
}

}  // namespace
}  // namespace gradsync::cuda
