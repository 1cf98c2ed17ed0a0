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

/// Memory of a device. Its bytes are released when the last tensor that uses it goes away.
/// `data()` is null on the meta device and not dereferenceable by the host on CUDA.
class Storage {
 public:
  virtual ~Storage() = default;
  std::byte* data() const noexcept { return data_; }
  Bytes nbytes() const noexcept { return nbytes_; }
  /// Memory that a program lent (Tensor::from_blob): others may see what is written to it.
  bool is_foreign() const noexcept { return is_foreign_; }

 protected:
  Storage(std::byte* data, Bytes nbytes, bool is_foreign = false)
      : data_(data), nbytes_(nbytes), is_foreign_(is_foreign) {}

 private:
  std::byte* data_;
  Bytes nbytes_;
  bool is_foreign_;
};

/// One AdamW step on one parameter (Loshchilov & Hutter; PyTorch 2.x's order of operations,
/// torch/optim/adamw.py, single tensor). The scalars are computed in double by the caller.
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

/// One SGD step on one parameter (torch/optim/sgd.py).
struct SgdStep {
  double lr;
  double momentum;
  double dampening;
  double weight_decay;
  bool nesterov;
  bool maximize;
  bool first;  ///< the momentum buffer is undefined before: it takes a copy of the gradient
  bool operator==(const SgdStep&) const = default;
};

/// One of many copies in a call.
struct TensorPair {
  Tensor* dst;
  const Tensor* src;
};

/// One of many AdamW steps in a call, as of `Device::adamw_step`.
struct AdamWUpdate {
  Tensor* param;
  const Tensor* grad;
  Tensor* exp_avg;
  Tensor* exp_avg_sq;
  Tensor* max_exp_avg_sq;
  AdamWStep step;
};

/// One of many SGD steps in a call, as of `Device::sgd_step`.
struct SgdUpdate {
  Tensor* param;
  const Tensor* grad;
  Tensor* momentum_buffer;
  SgdStep step;
};

/// The third seam: memory and the element-wise operations that the engine itself needs. The reducer
/// and the optimizers are written against this interface alone, so their code is the same on the
/// CPU, on CUDA and on the meta device (shapes without bytes), where every operation does nothing.
///
/// All tensors of one call are contiguous, live on this device and, unless said otherwise, have the
/// same dtype and numel; a call that breaks this throws Error(kInternal). Operations on CUDA are
/// ordered on the device's compute stream and may still be under way when a call returns; calls
/// that give values to the host wait for theirs. A device is shared by all ranks of a process and
/// is thread-safe for calls on different tensors.
class Device {
 public:
  virtual ~Device() = default;
  virtual DeviceType type() const noexcept = 0;
  /// "cpu", "meta", "cuda:0".
  virtual std::string name() const = 0;

  /// Uninitialised memory, aligned to 64 bytes (bit-identity of kernels depends on alignment).
  virtual std::shared_ptr<Storage> allocate(Bytes nbytes) = 0;

  /// dst = src. Both on this device; same dtype.
  virtual void copy(Tensor& dst, const Tensor& src) = 0;
  /// dst[i] = value, rounded to dst's dtype.
  virtual void fill(Tensor& dst, double value) = 0;
  /// dst += src, one rounding an element.
  virtual void add(Tensor& dst, const Tensor& src) = 0;
  /// dst = src * factor, factor rounded to the type that the dtype is computed in (float32 for the
  /// 16-bit types; the reducer's copy path). dst and src may be the same.
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

  /// Operations on many tensors, each as the operation on one, whose bits they have. A device to
  /// which every call is a launch does them in one; the others, one after another.
  virtual void copy_many(std::span<const TensorPair> pairs);
  virtual void scale_many(std::span<const TensorPair> pairs, double factor);
  /// norms[i] of tensors[i].
  virtual void norm_many(std::span<double> norms, std::span<const Tensor> tensors, double p);
  virtual void adamw_many(std::span<const AdamWUpdate> updates);
  virtual void sgd_many(std::span<const SgdUpdate> updates);
  /// True where work had better be saved up for such a call.
  virtual bool prefers_batches() const noexcept { return false; }

  /// dst[i] = factor * signed_power(key, i) (engine/core/random.hpp), exact for a
  /// whole factor whose bits the dtype holds: the gradients of replayed models.
  virtual void fill_signed_powers(Tensor& dst, std::uint32_t key, double factor);

  /// The operations of a model's layers on this device.
  virtual Kernels& kernels() noexcept = 0;

  /// The norms that `norm_many` gives, as a float64 tensor [tensors.size()] on this device: the
  /// host does not wait for them.
  virtual Tensor norms_of(std::span<const Tensor> tensors, double p);
  /// dst = src * clip_coefficient(norm, max_norm, dtype) for each pair, where `norm` is one float64
  /// element on this device.
  virtual void clip_many(std::span<const TensorPair> pairs, const Tensor& norm, double max_norm,
                         DType dtype);
  /// Starts to bring the tensor's bytes to the host: what the device does meanwhile, the host need
  /// not wait for twice. Not on the meta device.
  virtual std::unique_ptr<HostRead> read(const Tensor& src);

  /// Copies the tensor's bytes to or from the host; on the meta device an Error(kInternal).
  virtual void copy_to_host(std::span<std::byte> dst, const Tensor& src) = 0;
  virtual void copy_from_host(Tensor& dst, std::span<const std::byte> src) = 0;
};

/// The two devices that every build has. They live as long as the process.
Device& cpu_device();
Device& meta_device();

}  // namespace gradsync
