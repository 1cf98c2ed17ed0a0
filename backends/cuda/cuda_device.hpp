#pragma once

#include <functional>
#include <memory>
#include <string>

#include "gradsync/backends/cuda/caching_pool.hpp"
#include "gradsync/backends/cuda/cublas_api.hpp"
#include "gradsync/backends/cuda/cuda_api.hpp"
#include "gradsync/backends/cuda/cuda_events.hpp"
#include "gradsync/backends/cuda/pinned_buffers.hpp"
#include "gradsync/tensor/device.hpp"

namespace gradsync {

class CudaLayers;

/// One GPU, used by one rank: memory from a caching pool, and one compute stream that orders every
/// operation. Calls return once their work is enqueued; only those that return values to the host
/// wait (norm_many, copy_to_host, the bytes of a `read`).
///
/// Used by the rank's thread; memory may be freed by any thread.
class CudaDevice final : public Device {
 public:
  struct Options {
    /// Upper bound of every host wait for the GPU. Collectives fail earlier, by their own timeout.
    Seconds patience{600};
    /// The source of device memory; cudaMalloc if unset.
    CachingPool::Source memory;
  };

  /// Makes `ordinal` the calling thread's device. `api` and `products` must outlive the device.
  CudaDevice(CudaApi& api, CublasApi& products, int ordinal, Options options);
  ~CudaDevice() override;

  CudaApi& api() const noexcept { return api_; }
  int ordinal() const noexcept { return ordinal_; }
  CudaStream compute_stream() const noexcept { return stream_; }
  const std::shared_ptr<EventPool>& events() const noexcept { return events_; }
  CachingPool::Statistics memory_statistics() const { return pool_->statistics(); }

  /// Sets a function that is called repeatedly while the host waits for the GPU. It throws if the
  /// wait is pointless because the stream waits for a failed collective. Empty: no check.
  void set_interruption(std::function<void()> interruption) {
    interruption_ = std::move(interruption);
  }
  /// Blocks the host until the event completes. Throws what the interruption throws, or
  /// Error(kTimeout).
  void wait_on_host(CudaEvent event);
  /// Number of times the host had to wait for an event that was not complete yet.
  std::int64_t host_waits() const noexcept { return host_waits_; }

  // Device interface
  DeviceType type() const noexcept override { return DeviceType::kCuda; }
  std::string name() const override;
  std::shared_ptr<Storage> allocate(Bytes nbytes) override;
  void copy(Tensor& dst, const Tensor& src) override;
  void fill(Tensor& dst, double value) override;
  void add(Tensor& dst, const Tensor& src) override;
  void scale(Tensor& dst, const Tensor& src, double factor) override;
  void divide(Tensor& dst, double divisor) override;
  void cast(Tensor& dst, const Tensor& src) override;
  double norm(const Tensor& tensor, double p) override;
  void adamw_step(Tensor& param, const Tensor& grad, Tensor& exp_avg, Tensor& exp_avg_sq,
                  Tensor& max_exp_avg_sq, const AdamWStep& step) override;
  void sgd_step(Tensor& param, const Tensor& grad, Tensor& momentum_buffer,
                const SgdStep& step) override;
  void copy_many(std::span<const TensorPair> pairs) override;
  void scale_many(std::span<const TensorPair> pairs, double factor) override;
  void norm_many(std::span<double> norms, std::span<const Tensor> tensors, double p) override;
  Tensor norms_of(std::span<const Tensor> tensors, double p) override;
  void clip_many(std::span<const TensorPair> pairs, const Tensor& norm, double max_norm,
                 DType dtype) override;
  std::unique_ptr<HostRead> read(const Tensor& src) override;
  void adamw_many(std::span<const AdamWUpdate> updates) override;
  void sgd_many(std::span<const SgdUpdate> updates) override;
  bool prefers_batches() const noexcept override { return true; }
  void fill_signed_powers(Tensor& dst, std::uint32_t key, double factor) override;
  Kernels& kernels() noexcept override;
  void copy_to_host(std::span<std::byte> dst, const Tensor& src) override;
  void copy_from_host(Tensor& dst, std::span<const std::byte> src) override;

 private:
  template <typename Run>
  void for_each_dtype(std::span<const TensorPair> pairs, const char* operation, Run run);

  CudaApi& api_;
  int ordinal_;
  Options options_;
  std::shared_ptr<EventPool> events_;
  std::shared_ptr<CachingPool> pool_;
  CudaStream stream_;
  PinnedBuffers pinned_;
  std::unique_ptr<CudaLayers> layers_;
  std::function<void()> interruption_;
  std::int64_t host_waits_ = 0;
};

}  // namespace gradsync
