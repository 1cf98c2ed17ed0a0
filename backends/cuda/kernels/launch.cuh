#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <type_traits>

#include "gradsync/backends/cuda/cuda_api.hpp"
#include "gradsync/core/error.hpp"
#include "gradsync/tensor/element.hpp"

// The kernels use only the part of CUDA C++ that a small header can emulate on the host (no warp
// intrinsics, no atomics, launches through a function). Tests thus run the same source without a
// GPU; the emulation header replaces this block.
#ifdef __CUDACC__
#include <cuda_runtime.h>

namespace gradsync::cuda {

/// Threads per block; a power of two.
inline constexpr int kThreads = 256;

template <typename... Parameters, typename... Arguments>
void launch(void (*kernel)(Parameters...), dim3 grid, CudaStream stream, Arguments... arguments) {
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = dim3(kThreads);
  config.stream = stream;
  const cudaError_t result =
      cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...);
  if (result != cudaSuccess) {
    throw Error(ErrorCode::kInternal,
                std::string("a CUDA kernel could not be launched: ") + cudaGetErrorString(result));
  }
}

}  // namespace gradsync::cuda
#endif

namespace gradsync::cuda {

/// Number of blocks for a grid-stride loop over `count` elements.
inline unsigned blocks_for(std::int64_t count, std::int64_t most = 1024) {
  return static_cast<unsigned>(
      std::clamp<std::int64_t>((count + kThreads - 1) / kThreads, 1, most));
}

/// This thread's first element of a grid-stride loop, and the stride.
__device__ inline std::int64_t first_element() {
  return static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
}
__device__ inline std::int64_t element_step() {
  return static_cast<std::int64_t>(gridDim.x) * kThreads;
}

template <typename T>
__device__ MathType<T> widen(T value) {
  return static_cast<MathType<T>>(value);
}
template <typename T>
__device__ T narrow(MathType<T> value) {
  return static_cast<T>(value);
}

/// Block-wide tree reduction with a fixed order; every thread gets the result. All threads of the
/// block must call it.
template <typename T, typename Combine>
__device__ T reduce_block(T value, Combine combine) {
  __shared__ T values[kThreads];
  const int thread = static_cast<int>(threadIdx.x);
  __syncthreads();  // all threads have read the previous reduction's result
  values[thread] = value;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (thread < half) values[thread] = combine(values[thread], values[thread + half]);
    __syncthreads();
  }
  return values[0];
}

struct Plus {
  template <typename T>
  __device__ T operator()(T a, T b) const {
    return a + b;
  }
};
/// The maximum; NaN if either value is NaN.
struct Larger {
  template <typename T>
  __device__ T operator()(T a, T b) const {
    return a > b || a != a ? a : b;
  }
};

}  // namespace gradsync::cuda
