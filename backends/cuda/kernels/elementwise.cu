#include <cmath>

#include "gradsync/backends/cuda/cuda_kernels.hpp"
#include "gradsync/backends/cuda/kernels/batch.cuh"
#include "gradsync/core/random.hpp"
#include "gradsync/tensor/clip_coefficient.hpp"

namespace gradsync::cuda {
namespace {

template <typename T>
__global__ void fill_kernel(T* dst, std::int64_t count, T value) {
  for (std::int64_t i = first_element(); i < count; i += element_step()) dst[i] = value;
}

template <typename T>
__global__ void fill_signed_powers_kernel(T* dst, std::int64_t count, std::uint32_t key,
                                          MathType<T> factor) {
  for (std::int64_t i = first_element(); i < count; i += element_step()) {
    dst[i] = narrow<T>(factor * static_cast<MathType<T>>(signed_power(key, i)));
  }
}

template <typename T>
__global__ void add_kernel(T* dst, const T* src, std::int64_t count) {
  for (std::int64_t i = first_element(); i < count; i += element_step()) {
    // The addition promotes integers narrower than int.
    dst[i] = static_cast<T>(widen(dst[i]) + widen(src[i]));
  }
}

template <typename T>
__global__ void divide_kernel(T* dst, std::int64_t count, MathType<T> divisor) {
  for (std::int64_t i = first_element(); i < count; i += element_step()) {
    dst[i] = narrow<T>(widen(dst[i]) / divisor);
  }
}

template <typename To, typename From>
__global__ void cast_kernel(To* dst, const From* src, std::int64_t count) {
  for (std::int64_t i = first_element(); i < count; i += element_step()) {
    dst[i] = static_cast<To>(static_cast<MathType<To>>(widen(src[i])));
  }
}

template <typename T>
__global__ void copy_many_kernel(Batch<CopyItem> batch) {
  const CopyItem& item = batch.items[blockIdx.y];
  T* const dst = static_cast<T*>(item.dst);
  const T* const src = static_cast<const T*>(item.src);
  for (std::int64_t i = first_element(); i < item.count; i += element_step()) dst[i] = src[i];
}

template <typename T>
__global__ void scale_many_kernel(Batch<CopyItem> batch, MathType<T> factor) {
  const CopyItem& item = batch.items[blockIdx.y];
  T* const dst = static_cast<T*>(item.dst);
  const T* const src = static_cast<const T*>(item.src);
  for (std::int64_t i = first_element(); i < item.count; i += element_step()) {
    dst[i] = narrow<T>(widen(src[i]) * factor);
  }
}

template <typename T>
__global__ void clip_many_kernel(Batch<CopyItem> batch, const double* norm, double max_norm,
                                 DType norm_dtype) {
  const CopyItem& item = batch.items[blockIdx.y];
  T* const dst = static_cast<T*>(item.dst);
  const T* const src = static_cast<const T*>(item.src);
  const auto factor = static_cast<MathType<T>>(clip_coefficient(*norm, max_norm, norm_dtype));
  for (std::int64_t i = first_element(); i < item.count; i += element_step()) {
    dst[i] = narrow<T>(widen(src[i]) * factor);
  }
}

__global__ void spin_kernel(std::int64_t rounds, float* never_written) {
  float x = static_cast<float>(threadIdx.x);
  for (std::int64_t i = 0; i < rounds; ++i) x = std::fma(x, 0.999f, 0.5f);
  if (x < 0) *never_written = x;  // never true, but keeps the compiler from removing the loop
}

}  // namespace

void fill(CudaStream stream, void* dst, DType dtype, std::int64_t count, double value) {
  if (count == 0) return;
  with_element_type(dtype, [&](auto tag) {
    using T = decltype(tag);
    launch(fill_kernel<T>, blocks_for(count), stream, static_cast<T*>(dst), count,
           static_cast<T>(static_cast<MathType<T>>(value)));
  });
}

void fill_signed_powers(CudaStream stream, void* dst, DType dtype, std::int64_t count,
                        std::uint32_t key, double factor) {
  if (count == 0) return;
  with_floating_type(dtype, "fill_signed_powers", [&](auto tag) {
    using T = decltype(tag);
    launch(fill_signed_powers_kernel<T>, blocks_for(count), stream, static_cast<T*>(dst), count,
           key, static_cast<MathType<T>>(factor));
  });
}

void add(CudaStream stream, void* dst, const void* src, DType dtype, std::int64_t count) {
  if (count == 0) return;
  with_element_type(dtype, [&](auto tag) {
    using T = decltype(tag);
    launch(add_kernel<T>, blocks_for(count), stream, static_cast<T*>(dst),
           static_cast<const T*>(src), count);
  });
}

void divide(CudaStream stream, void* dst, DType dtype, std::int64_t count, double divisor) {
  if (count == 0) return;
  with_floating_type(dtype, "divide", [&](auto tag) {
    using T = decltype(tag);
    launch(divide_kernel<T>, blocks_for(count), stream, static_cast<T*>(dst), count,
           static_cast<MathType<T>>(divisor));
  });
}

void cast(CudaStream stream, void* dst, DType to, const void* src, DType from, std::int64_t count) {
  if (count == 0) return;
  with_element_type(to, [&](auto to_tag) {
    with_element_type(from, [&](auto from_tag) {
      using To = decltype(to_tag);
      using From = decltype(from_tag);
      launch(cast_kernel<To, From>, blocks_for(count), stream, static_cast<To*>(dst),
             static_cast<const From*>(src), count);
    });
  });
}

void copy_many(CudaStream stream, std::span<const CopyItem> items, DType dtype) {
  const auto launch_for = [&](auto tag) {
    using T = decltype(tag);
    for_each_batch(items,
                   [&](const Batch<CopyItem>& batch, unsigned tensors, std::int64_t longest) {
                     launch(copy_many_kernel<T>,
                            dim3(blocks_for(longest, kMostBlocksOfItem), tensors), stream, batch);
                   });
  };
  switch (element_size(dtype)) {
    case 1:
      return launch_for(std::uint8_t{});
    case 2:
      return launch_for(std::uint16_t{});
    case 4:
      return launch_for(std::uint32_t{});
    default:
      return launch_for(std::uint64_t{});
  }
}

void scale_many(CudaStream stream, std::span<const CopyItem> items, DType dtype, double factor) {
  with_floating_type(dtype, "scale", [&](auto tag) {
    using T = decltype(tag);
    for_each_batch(
        items, [&](const Batch<CopyItem>& batch, unsigned tensors, std::int64_t longest) {
          launch(scale_many_kernel<T>, dim3(blocks_for(longest, kMostBlocksOfItem), tensors),
                 stream, batch, static_cast<MathType<T>>(factor));
        });
  });
}

void clip_many(CudaStream stream, std::span<const CopyItem> items, DType dtype, const double* norm,
               double max_norm, DType norm_dtype) {
  with_floating_type(dtype, "clip", [&](auto tag) {
    using T = decltype(tag);
    for_each_batch(
        items, [&](const Batch<CopyItem>& batch, unsigned tensors, std::int64_t longest) {
          launch(clip_many_kernel<T>, dim3(blocks_for(longest, kMostBlocksOfItem), tensors), stream,
                 batch, norm, max_norm, norm_dtype);
        });
  });
}

void spin(CudaStream stream, int blocks, std::int64_t rounds) {
  launch(spin_kernel, dim3(static_cast<unsigned>(blocks)), stream, rounds, nullptr);
}

}  // namespace gradsync::cuda
