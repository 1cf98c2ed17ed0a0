#pragma once

// Included before every kernels/*.cu when the tests compile it for the host: what CUDA C++ means
// there. A launch puts the whole grid into the stand-in's stream; blocks run one after another, the
// threads of a block as coroutines that meet at __syncthreads. Small blocks, so that the ends of
// loops are met with little data.

#include <functional>

#include "gradsync/backends/cuda/cuda_api.hpp"

struct dim3 {
  unsigned x, y, z;
  dim3(unsigned x_size, unsigned y_size = 1, unsigned z_size = 1)
      : x(x_size), y(y_size), z(z_size) {}
};

namespace gradsync::test {

struct KernelPosition {
  unsigned x = 0;
  unsigned y = 0;
};
inline thread_local KernelPosition thread_position;
inline thread_local KernelPosition block_position;
inline thread_local KernelPosition grid_size;

/// Puts a grid into the stream. `kernel` tells kernels apart.
void launch_grid(CudaStream stream, const void* kernel, dim3 grid, unsigned threads,
                 std::function<void()> thread);
/// __syncthreads
void synchronize_block();

}  // namespace gradsync::test

#define __global__
#define __device__
#define __shared__ static thread_local
#define threadIdx (gradsync::test::thread_position)
#define blockIdx (gradsync::test::block_position)
#define gridDim (gradsync::test::grid_size)
#define __syncthreads() (gradsync::test::synchronize_block())

namespace gradsync::cuda {

inline constexpr int kThreads = 8;

template <typename... Parameters, typename... Arguments>
void launch(void (*kernel)(Parameters...), dim3 grid, CudaStream stream, Arguments... arguments) {
  test::launch_grid(stream, reinterpret_cast<const void*>(kernel), grid, kThreads,
                    [=] { kernel(static_cast<Parameters>(arguments)...); });
}

}  // namespace gradsync::cuda
