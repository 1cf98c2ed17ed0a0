#pragma once

#include <cstdint>
#include <span>

#include "gradsync/backends/cuda/cuda_api.hpp"
#include "gradsync/tensor/device.hpp"
#include "gradsync/tensor/dtype.hpp"

/// Launchers of the element-wise and optimizer kernels (kernels/*.cu): asynchronous, in stream
/// order. Pointers refer to device memory of `count` contiguous elements; empty tensors are
/// skipped. float32 and float64 are computed in their own precision, the 16-bit types in float32.
/// Every kernel is deterministic. A dtype that a kernel does not support throws Error(kInternal).
namespace gradsync::cuda {

struct CopyItem {
  void* dst;
  const void* src;
  std::int64_t count;
};
struct NormItem {
  const void* data;
  std::int64_t count;
};
struct SgdItem {
  void* param;
  const void* grad;
  void* momentum_buffer;  ///< null if momentum is 0
  std::int64_t count;
};
struct AdamWItem {
  void* param;
  const void* grad;
  void* exp_avg;
  void* exp_avg_sq;
  void* max_exp_avg_sq;  ///< null unless amsgrad
  std::int64_t count;
};

/// dst[i] = value; all dtypes.
void fill(CudaStream stream, void* dst, DType dtype, std::int64_t count, double value);
/// dst[i] = factor * signed_power(key, i); floating dtypes.
void fill_signed_powers(CudaStream stream, void* dst, DType dtype, std::int64_t count,
                        std::uint32_t key, double factor);
/// dst[i] += src[i]; all dtypes.
void add(CudaStream stream, void* dst, const void* src, DType dtype, std::int64_t count);
/// dst[i] /= divisor; floating dtypes.
void divide(CudaStream stream, void* dst, DType dtype, std::int64_t count, double divisor);
/// dst[i] = src[i] converted; all pairs of dtypes.
void cast(CudaStream stream, void* dst, DType to, const void* src, DType from, std::int64_t count);

/// Copies many tensors in as few launches as the kernel parameters allow (kernels/batch.cuh).
void copy_many(CudaStream stream, std::span<const CopyItem> items, DType dtype);
/// dst[i] = src[i] * factor; floating dtypes.
void scale_many(CudaStream stream, std::span<const CopyItem> items, DType dtype, double factor);

/// dst[i] = src[i] * clip_coefficient(*norm, max_norm, norm_dtype); `norm` is in device memory.
void clip_many(CudaStream stream, std::span<const CopyItem> items, DType dtype, const double* norm,
               double max_norm, DType norm_dtype);

/// norms[k] (device memory) = p-norm of tensor k, rounded to its dtype. `partial` is device memory
/// for norm_partials() doubles per tensor. The order of the sums depends only on the sizes.
void norm_many(CudaStream stream, std::span<const NormItem> items, DType dtype, double p,
               double* norms, double* partial);
std::int64_t norm_partials() noexcept;

void adamw_many(CudaStream stream, std::span<const AdamWItem> items, DType dtype,
                const AdamWStep& step);
void sgd_many(CudaStream stream, std::span<const SgdItem> items, DType dtype, const SgdStep& step);

/// Keeps `blocks` blocks busy with `rounds` dependent multiply-adds each; writes nothing.
void spin(CudaStream stream, int blocks, std::int64_t rounds);

}  // namespace gradsync::cuda
