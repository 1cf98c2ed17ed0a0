#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "gradsync/core/units.hpp"
#include "gradsync/tensor/dtype.hpp"

namespace gradsync {

class HostRead;
class Kernels;
class Tensor;

enum class DeviceType { kCpu, kCuda, kMeta };

/// Memory on a device, released when the last tensor that uses it is destroyed. `data()` is null on
/// the meta device, and the host must not dereference it on CUDA.
class Storage {
 public:
  virtual ~Storage() = default;
  std::byte* data() const noexcept { return data_; }
  Bytes nbytes() const noexcept { return nbytes_; }
  /// True for memory lent by the program (Tensor::from_blob), whose writes others may see.
  bool is_foreign() const noexcept { return is_foreign_; }

 protected:
  Storage(std::byte* data, Bytes nbytes, bool is_foreign = false)
      : data_(data), nbytes_(nbytes), is_foreign_(is_foreign) {}

 private:
  std::byte* data_;
  Bytes nbytes_;
  bool is_foreign_;
};

/// One AdamW step of one parameter (Loshchilov & Hutter; the order of operations of PyTorch 2.x,
/// torch/optim/adamw.py, single tensor). The caller computes the scalars in double.
struct AdamWStep {
  double lr;
  double beta1;
  double beta2;
  double eps;
  double weight_decay;
  bool maximize;
  std::int64_t step;  ///< 1 for the first update of this parameter
  bool operator==(const AdamWStep&) const = default;
};

/// One SGD step of one parameter (torch/optim/sgd.py).
struct SgdStep {
  double lr;
  double momentum;
  double dampening;
  double weight_decay;
  bool nesterov;
  bool maximize;
  bool first;  ///< the momentum buffer is undefined and becomes a copy of the gradient
  bool operator==(const SgdStep&) const = default;
};

/// One copy of a batched call.
struct TensorPair {
  Tensor* dst;
  const Tensor* src;
};

/// One AdamW step of a batched call; see `Device::adamw_step`.
struct AdamWUpdate {
  Tensor* param;
  const Tensor* grad;
  Tensor* exp_avg;
  Tensor* exp_avg_sq;
  Tensor* max_exp_avg_sq;
  AdamWStep step;
};

/// One SGD step of a batched call; see `Device::sgd_step`.
struct SgdUpdate {
  Tensor* param;
  const Tensor* grad;
  Tensor* momentum_buffer;
  SgdStep step;
};

/// The third seam: memory and the element-wise operations that the engine itself needs. The reducer
/// and the optimizers use only this interface, so their code is the same on the CPU, on CUDA and on
/// the meta device (shapes without data), where every operation does nothing.
///
/// All tensors of one call must be contiguous, live on this device and, unless stated otherwise,
/// have the same dtype and numel; a violation throws Error(kInternal). CUDA operations are ordered
/// on the device's compute stream and may still be running when a call returns; calls that return
/// values to the host wait for them. A device is shared by all ranks of a process and is
/// thread-safe for calls on different tensors.
class Device {
 public:
  virtual ~Device() = default;
  virtual DeviceType type() const noexcept = 0;
  /// "cpu", "meta", "cuda:0".
  virtual std::string name() const = 0;

  /// Uninitialized memory, aligned to 64 bytes (bit-identity of kernels depends on alignment).
  virtual std::shared_ptr<Storage> allocate(Bytes nbytes) = 0;

  /// dst = src. Both on this device; same dtype.
  virtual void copy(Tensor& dst, const Tensor& src) = 0;
  /// dst[i] = value, rounded to dst's dtype.
  virtual void fill(Tensor& dst, double value) = 0;
  /// dst += src, one rounding per element.
  virtual void add(Tensor& dst, const Tensor& src) = 0;
  /// dst = src * factor, with factor rounded to the dtype's compute type (float32 for the 16-bit
  /// types). The reducer's copy path. dst and src may be the same.
  virtual void scale(Tensor& dst, const Tensor& src, double factor) = 0;
  /// dst /= divisor, a true division (the reducer's alias path on CPU).
  virtual void divide(Tensor& dst, double divisor) = 0;
  /// dst = src converted to dst's dtype (round to nearest even).
  virtual void cast(Tensor& dst, const Tensor& src) = 0;
  /// p-norm of the elements (p > 0, infinity included), in the tensor's dtype, widened to double.
  virtual double norm(const Tensor& tensor, double p) = 0;

  /// Updates `param`, `exp_avg`, `exp_avg_sq` (and `max_exp_avg_sq` unless it is undefined:
  /// amsgrad).
  virtual void adamw_step(Tensor& param, const Tensor& grad, Tensor& exp_avg, Tensor& exp_avg_sq,
                          Tensor& max_exp_avg_sq, const AdamWStep& step) = 0;
  /// Updates `param` and `momentum_buffer` (undefined when momentum is 0).
  virtual void sgd_step(Tensor& param, const Tensor& grad, Tensor& momentum_buffer,
                        const SgdStep& step) = 0;

  /// Batched operations, bit-identical to the single calls. A device with launch overhead runs each
  /// batch in one launch; others loop.
  virtual void copy_many(std::span<const TensorPair> pairs);
  virtual void scale_many(std::span<const TensorPair> pairs, double factor);
  /// norms[i] = norm of tensors[i].
  virtual void norm_many(std::span<double> norms, std::span<const Tensor> tensors, double p);
  virtual void adamw_many(std::span<const AdamWUpdate> updates);
  virtual void sgd_many(std::span<const SgdUpdate> updates);
  /// True if work should be batched for these calls.
  virtual bool prefers_batches() const noexcept { return false; }

  /// dst[i] = factor * signed_power(key, i) (engine/core/random.hpp): the gradients of replayed
  /// models. Exact if factor is an integer whose bits fit the dtype.
  virtual void fill_signed_powers(Tensor& dst, std::uint32_t key, double factor);

  /// The operations of a model's layers on this device.
  virtual Kernels& kernels() noexcept = 0;

  /// Same as `norm_many`, but returns a float64 tensor [tensors.size()] on this device, so the host
  /// does not wait.
  virtual Tensor norms_of(std::span<const Tensor> tensors, double p);
  /// dst = src * clip_coefficient(norm, max_norm, dtype) for each pair; `norm` is one float64
  /// element on this device.
  virtual void clip_many(std::span<const TensorPair> pairs, const Tensor& norm, double max_norm,
                         DType dtype);
  /// Starts an asynchronous copy of the tensor to the host. Not available on the meta device.
  virtual std::unique_ptr<HostRead> read(const Tensor& src);

  /// Copies the tensor's bytes to or from the host. Throws Error(kInternal) on the meta device.
  virtual void copy_to_host(std::span<std::byte> dst, const Tensor& src) = 0;
  virtual void copy_from_host(Tensor& dst, std::span<const std::byte> src) = 0;
};

/// The two devices that every build has. They live until the process exits.
Device& cpu_device();
Device& meta_device();

}  // namespace gradsync
