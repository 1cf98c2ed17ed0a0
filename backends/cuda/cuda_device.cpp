#include "gradsync/backends/cuda/cuda_device.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "gradsync/backends/cuda/cuda_kernels.hpp"
#include "gradsync/backends/cuda/cuda_layers.hpp"
#include "gradsync/core/error.hpp"
#include "gradsync/tensor/element.hpp"
#include "gradsync/tensor/host_read.hpp"
#include "gradsync/tensor/tensor.hpp"

namespace gradsync {
namespace {

class CudaStorage final : public Storage {
 public:
  CudaStorage(std::shared_ptr<CachingPool> pool, Bytes nbytes)
      : Storage(static_cast<std::byte*>(pool->allocate(nbytes)), nbytes), pool_(std::move(pool)) {}
  ~CudaStorage() override { pool_->give_back(data(), nbytes()); }
  CudaStorage(const CudaStorage&) = delete;
  CudaStorage& operator=(const CudaStorage&) = delete;

 private:
  std::shared_ptr<CachingPool> pool_;
};

std::string describe(const Tensor& tensor) {
  if (!tensor.defined()) return "undefined";
  return fmt::format("{}{} on {}", to_string(tensor.dtype()), to_string(tensor.shape()),
                     tensor.device().name());
}

void require_on(const Device& device, const char* operation, const Tensor& tensor) {
  if (!tensor.defined() || &tensor.device() != &device) {
    throw Error(ErrorCode::kInternal,
                fmt::format("{} on {} was given {}", operation, device.name(), describe(tensor)));
  }
}

void require_same(const Device& device, const char* operation, const Tensor& a, const Tensor& b) {
  require_on(device, operation, a);
  require_on(device, operation, b);
  if (a.dtype() != b.dtype() || a.numel() != b.numel()) {
    throw Error(ErrorCode::kInternal,
                fmt::format("{} cannot combine {} with {}", operation, describe(a), describe(b)));
  }
}

void require_floating(const char* operation, const Tensor& tensor) {
  if (!is_floating_point(tensor.dtype())) {
    throw Error(ErrorCode::kInternal, fmt::format("{} needs a floating-point tensor, found {}",
                                                  operation, to_string(tensor.dtype())));
  }
}

void require_bytes(const char* operation, const Tensor& tensor, std::size_t nbytes) {
  if (static_cast<std::size_t>(tensor.nbytes()) != nbytes) {
    throw Error(ErrorCode::kInternal,
                fmt::format("{} of {} was given {} bytes", operation, describe(tensor), nbytes));
  }
}

const CudaDevice::Options& with_defaults(CudaDevice::Options& options, CudaApi& api) {
  if (!options.memory.allocate) {
    options.memory = {[&api](Bytes nbytes) { return api.allocate(nbytes); },
                      [&api](void* memory) { api.release(memory); }};
  }
  return options;
}

/// An asynchronous copy to page-locked memory, with an event recorded after it.
class CudaRead final : public HostRead {
 public:
  CudaRead(CudaDevice& device, PinnedBuffers& buffers, const Tensor& src)
      : HostRead(src.dtype()),
        device_(device),
        buffers_(buffers),
        nbytes_(static_cast<std::size_t>(src.nbytes())),
        buffer_(buffers.take(src.nbytes())),
        copied_(take_event(device.events())) {
    device.api().copy(buffer_.data, src.data(), src.nbytes(), device.compute_stream());
    device.api().record(copied_.get(), device.compute_stream());
  }
  ~CudaRead() override { buffers_.used(std::move(buffer_), device_.compute_stream()); }
  CudaRead(const CudaRead&) = delete;
  CudaRead& operator=(const CudaRead&) = delete;

  std::span<const std::byte> bytes() override {
    device_.wait_on_host(copied_.get());
    return {buffer_.data, nbytes_};
  }

 private:
  CudaDevice& device_;
  PinnedBuffers& buffers_;
  const std::size_t nbytes_;
  PinnedBuffers::Buffer buffer_;
  const EventPtr copied_;
};

/// The part of a large copy that goes through one pinned buffer.
constexpr Bytes kCopyPiece = Bytes{16} << 20;

}  // namespace

CudaDevice::CudaDevice(CudaApi& api, CublasApi& products, int ordinal, Options options)
    : api_(api),
      ordinal_((api.set_device(ordinal), ordinal)),
      options_(with_defaults(options, api)),
      events_(std::make_shared<EventPool>(api)),
      pool_(std::make_shared<CachingPool>(options_.memory)),
      stream_(api.create_stream(false)),
      pinned_(api, events_),
      layers_(std::make_unique<CudaLayers>(*this, products)) {}

CudaDevice::~CudaDevice() {
  layers_.reset();
  api_.destroy_stream(stream_);
}

std::string CudaDevice::name() const {
  return fmt::format("cuda:{}", ordinal_);
}

void CudaDevice::wait_on_host(CudaEvent event) {
  using Steady = std::chrono::steady_clock;
  constexpr std::chrono::microseconds kSpin{100};  // most waits are short
  constexpr std::chrono::microseconds kNap{50};
  const auto begin = Steady::now();
  bool waits = false;
  while (!api_.is_done(event)) {
    if (!std::exchange(waits, true)) ++host_waits_;
    if (interruption_) interruption_();
    const auto waited = Steady::now() - begin;
    if (waited > options_.patience) {
      throw Error(ErrorCode::kTimeout,
                  fmt::format("{} has not come to the end of its work after {}", name(),
                              format_duration(options_.patience)));
    }
    if (waited < kSpin) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(kNap);
    }
  }
  // The results of a failed collective must not be used.
  if (interruption_) interruption_();
  layers_->check_indices();
}

Kernels& CudaDevice::kernels() noexcept {
  return *layers_;
}

std::shared_ptr<Storage> CudaDevice::allocate(Bytes nbytes) {
  return std::make_shared<CudaStorage>(pool_, nbytes);
}

void CudaDevice::copy(Tensor& dst, const Tensor& src) {
  require_same(*this, "copy", dst, src);
  if (src.nbytes() == 0 || dst.data() == src.data()) return;
  api_.copy(dst.data(), src.data(), src.nbytes(), stream_);
}

void CudaDevice::fill(Tensor& dst, double value) {
  require_on(*this, "fill", dst);
  if (dst.nbytes() == 0) return;
  if (value == 0 && !std::signbit(value)) {
    api_.clear(dst.data(), dst.nbytes(), stream_);
  } else {
    cuda::fill(stream_, dst.data(), dst.dtype(), dst.numel(), value);
  }
}

void CudaDevice::fill_signed_powers(Tensor& dst, std::uint32_t key, double factor) {
  require_on(*this, "fill_signed_powers", dst);
  require_floating("fill_signed_powers", dst);
  cuda::fill_signed_powers(stream_, dst.data(), dst.dtype(), dst.numel(), key, factor);
}

void CudaDevice::add(Tensor& dst, const Tensor& src) {
  require_same(*this, "add", dst, src);
  cuda::add(stream_, dst.data(), src.data(), dst.dtype(), dst.numel());
}

void CudaDevice::scale(Tensor& dst, const Tensor& src, double factor) {
  const TensorPair pair{&dst, &src};
  scale_many({&pair, 1}, factor);
}

void CudaDevice::divide(Tensor& dst, double divisor) {
  require_on(*this, "divide", dst);
  require_floating("divide", dst);
  cuda::divide(stream_, dst.data(), dst.dtype(), dst.numel(), divisor);
}

void CudaDevice::cast(Tensor& dst, const Tensor& src) {
  require_on(*this, "cast", dst);
  require_on(*this, "cast", src);
  if (dst.numel() != src.numel()) require_same(*this, "cast", dst, src);
  if (dst.dtype() == src.dtype()) return copy(dst, src);
  cuda::cast(stream_, dst.data(), dst.dtype(), src.data(), src.dtype(), src.numel());
}

double CudaDevice::norm(const Tensor& tensor, double p) {
  double result = 0;
  norm_many({&result, 1}, {&tensor, 1}, p);
  return result;
}

void CudaDevice::adamw_step(Tensor& param, const Tensor& grad, Tensor& exp_avg, Tensor& exp_avg_sq,
                            Tensor& max_exp_avg_sq, const AdamWStep& step) {
  const AdamWUpdate update{&param, &grad, &exp_avg, &exp_avg_sq, &max_exp_avg_sq, step};
  adamw_many({&update, 1});
}

void CudaDevice::sgd_step(Tensor& param, const Tensor& grad, Tensor& momentum_buffer,
                          const SgdStep& step) {
  const SgdUpdate update{&param, &grad, &momentum_buffer, step};
  sgd_many({&update, 1});
}

/// Calls `run(items, dtype)` for each maximal run of pairs with equal dtype; usually one.
template <typename Run>
void CudaDevice::for_each_dtype(std::span<const TensorPair> pairs, const char* operation, Run run) {
  std::vector<cuda::CopyItem> items;
  items.reserve(pairs.size());
  for (std::size_t begin = 0; begin < pairs.size();) {
    const DType dtype = pairs[begin].src->dtype();
    items.clear();
    std::size_t end = begin;
    for (; end < pairs.size() && pairs[end].src->dtype() == dtype; ++end) {
      require_same(*this, operation, *pairs[end].dst, *pairs[end].src);
      items.push_back({pairs[end].dst->data(), pairs[end].src->data(), pairs[end].src->numel()});
    }
    run(std::span<const cuda::CopyItem>(items), dtype);
    begin = end;
  }
}

void CudaDevice::copy_many(std::span<const TensorPair> pairs) {
  for_each_dtype(pairs, "copy", [&](std::span<const cuda::CopyItem> items, DType dtype) {
    cuda::copy_many(stream_, items, dtype);
  });
}

void CudaDevice::scale_many(std::span<const TensorPair> pairs, double factor) {
  for_each_dtype(pairs, "scale", [&](std::span<const cuda::CopyItem> items, DType dtype) {
    cuda::scale_many(stream_, items, dtype, factor);
  });
}

void CudaDevice::norm_many(std::span<double> norms, std::span<const Tensor> tensors, double p) {
  if (tensors.empty()) return;
  copy_to_host(std::as_writable_bytes(norms.first(tensors.size())), norms_of(tensors, p));
}

Tensor CudaDevice::norms_of(std::span<const Tensor> tensors, double p) {
  if (!(p > 0)) {
    throw Error(ErrorCode::kInternal,
                fmt::format("the norm of order {} is not taken: p must be positive", p));
  }
  const auto count = static_cast<std::int64_t>(tensors.size());
  Tensor results = Tensor::zeros({count}, DType::kFloat64, *this);
  Tensor partial = Tensor::empty({count, cuda::norm_partials()}, DType::kFloat64, *this);
  std::vector<cuda::NormItem> items;
  for (std::size_t begin = 0; begin < tensors.size();) {
    const DType dtype = tensors[begin].dtype();
    require_floating("norm", tensors[begin]);
    items.clear();
    std::size_t end = begin;
    for (; end < tensors.size() && tensors[end].dtype() == dtype; ++end) {
      require_on(*this, "norm", tensors[end]);
      items.push_back({tensors[end].data(), tensors[end].numel()});
    }
    cuda::norm_many(stream_, items, dtype, p, reinterpret_cast<double*>(results.data()) + begin,
                    reinterpret_cast<double*>(partial.data()) +
                        static_cast<std::int64_t>(begin) * cuda::norm_partials());
    begin = end;
  }
  return results;
}

void CudaDevice::clip_many(std::span<const TensorPair> pairs, const Tensor& norm, double max_norm,
                           DType dtype) {
  require_on(*this, "clip_many", norm);
  const auto* const value = reinterpret_cast<const double*>(norm.data());
  for_each_dtype(pairs, "clip_many", [&](std::span<const cuda::CopyItem> items, DType of_items) {
    cuda::clip_many(stream_, items, of_items, value, max_norm, dtype);
  });
}

void CudaDevice::adamw_many(std::span<const AdamWUpdate> updates) {
  // One launch per run of updates with equal dtype and scalars; usually one.
  const auto alike = [](const AdamWUpdate& a, const AdamWUpdate& b) {
    return a.param->dtype() == b.param->dtype() && a.step == b.step;
  };
  std::vector<cuda::AdamWItem> items;
  items.reserve(updates.size());
  for (std::size_t begin = 0; begin < updates.size();) {
    const AdamWUpdate& first = updates[begin];
    require_floating("adamw_step", *first.param);
    items.clear();
    std::size_t end = begin;
    for (; end < updates.size() && alike(first, updates[end]); ++end) {
      const AdamWUpdate& u = updates[end];
      require_same(*this, "adamw_step", *u.param, *u.grad);
      require_same(*this, "adamw_step", *u.param, *u.exp_avg);
      require_same(*this, "adamw_step", *u.param, *u.exp_avg_sq);
      if (u.max_exp_avg_sq->defined()) {
        require_same(*this, "adamw_step", *u.param, *u.max_exp_avg_sq);
      }
      items.push_back({u.param->data(), u.grad->data(), u.exp_avg->data(), u.exp_avg_sq->data(),
                       u.max_exp_avg_sq->data(), u.param->numel()});
    }
    cuda::adamw_many(stream_, items, first.param->dtype(), first.step);
    begin = end;
  }
}

void CudaDevice::sgd_many(std::span<const SgdUpdate> updates) {
  const auto alike = [](const SgdUpdate& a, const SgdUpdate& b) {
    return a.param->dtype() == b.param->dtype() && a.step == b.step;
  };
  std::vector<cuda::SgdItem> items;
  items.reserve(updates.size());
  for (std::size_t begin = 0; begin < updates.size();) {
    const SgdUpdate& first = updates[begin];
    require_floating("sgd_step", *first.param);
    items.clear();
    std::size_t end = begin;
    for (; end < updates.size() && alike(first, updates[end]); ++end) {
      const SgdUpdate& u = updates[end];
      require_same(*this, "sgd_step", *u.param, *u.grad);
      if (u.momentum_buffer->defined()) {
        require_same(*this, "sgd_step", *u.param, *u.momentum_buffer);
      }
      items.push_back(
          {u.param->data(), u.grad->data(), u.momentum_buffer->data(), u.param->numel()});
    }
    cuda::sgd_many(stream_, items, first.param->dtype(), first.step);
    begin = end;
  }
}

void CudaDevice::copy_to_host(std::span<std::byte> dst, const Tensor& src) {
  require_on(*this, "copy_to_host", src);
  require_bytes("copy_to_host", src, dst.size());
  const auto total = static_cast<Bytes>(dst.size());
  for (Bytes done = 0; done < total;) {
    const Bytes piece = std::min(kCopyPiece, total - done);
    PinnedBuffers::Buffer buffer = pinned_.take(piece);
    api_.copy(buffer.data, src.data() + done, piece, stream_);
    const std::byte* const bytes = buffer.data;
    const EventPtr copied = take_event(events_);
    api_.record(copied.get(), stream_);
    pinned_.used(std::move(buffer), stream_);
    wait_on_host(copied.get());
    std::memcpy(dst.data() + done, bytes, static_cast<std::size_t>(piece));
    done += piece;
  }
}

std::unique_ptr<HostRead> CudaDevice::read(const Tensor& src) {
  require_on(*this, "read", src);
  return std::make_unique<CudaRead>(*this, pinned_, src);
}

void CudaDevice::copy_from_host(Tensor& dst, std::span<const std::byte> src) {
  require_on(*this, "copy_from_host", dst);
  require_bytes("copy_from_host", dst, src.size());
  const auto total = static_cast<Bytes>(src.size());
  for (Bytes done = 0; done < total;) {
    const Bytes piece = std::min(kCopyPiece, total - done);
    PinnedBuffers::Buffer buffer = pinned_.take(piece);
    std::memcpy(buffer.data, src.data() + done, static_cast<std::size_t>(piece));
    api_.copy(dst.data() + done, buffer.data, piece, stream_);
    pinned_.used(std::move(buffer), stream_);
    done += piece;
  }
}

}  // namespace gradsync
