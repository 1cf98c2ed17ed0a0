#include "gradsync/tensor/device.hpp"

#include <cmath>
#include <cstring>
#include <vector>

#include "gradsync/core/random.hpp"
#include "gradsync/tensor/clip_coefficient.hpp"
#include "gradsync/tensor/element.hpp"
#include "gradsync/tensor/host_read.hpp"
#include "gradsync/tensor/tensor.hpp"

namespace gradsync {
namespace {

/// A copy made at request time, for synchronous devices.
class CopiedRead final : public HostRead {
 public:
  CopiedRead(Device& device, const Tensor& src)
      : HostRead(src.dtype()), bytes_(static_cast<std::size_t>(src.nbytes())) {
    device.copy_to_host(bytes_, src);
  }
  std::span<const std::byte> bytes() override { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

}  // namespace

double HostRead::value() {
  const std::span<const std::byte> there = bytes();
  return with_floating_type(dtype_, "value", [&](auto tag) {
    using T = decltype(tag);
    T element;
    std::memcpy(&element, there.data(), sizeof(T));
    return static_cast<double>(static_cast<MathType<T>>(element));
  });
}

void Device::copy_many(std::span<const TensorPair> pairs) {
  for (const TensorPair& pair : pairs) copy(*pair.dst, *pair.src);
}

void Device::scale_many(std::span<const TensorPair> pairs, double factor) {
  for (const TensorPair& pair : pairs) scale(*pair.dst, *pair.src, factor);
}

void Device::norm_many(std::span<double> norms, std::span<const Tensor> tensors, double p) {
  for (std::size_t i = 0; i < tensors.size(); ++i) norms[i] = norm(tensors[i], p);
}

Tensor Device::norms_of(std::span<const Tensor> tensors, double p) {
  std::vector<double> norms(tensors.size());
  norm_many(norms, tensors, p);
  Tensor result = Tensor::empty({static_cast<std::int64_t>(norms.size())}, DType::kFloat64, *this);
  copy_from_host(result, std::as_bytes(std::span(norms)));
  return result;
}

void Device::clip_many(std::span<const TensorPair> pairs, const Tensor& norm, double max_norm,
                       DType dtype) {
  scale_many(pairs, clip_coefficient(read(norm)->value(), max_norm, dtype));
}

std::unique_ptr<HostRead> Device::read(const Tensor& src) {
  return std::make_unique<CopiedRead>(*this, src);
}

void Device::adamw_many(std::span<const AdamWUpdate> updates) {
  for (const AdamWUpdate& u : updates) {
    adamw_step(*u.param, *u.grad, *u.exp_avg, *u.exp_avg_sq, *u.max_exp_avg_sq, u.step);
  }
}

void Device::sgd_many(std::span<const SgdUpdate> updates) {
  for (const SgdUpdate& u : updates) sgd_step(*u.param, *u.grad, *u.momentum_buffer, u.step);
}

void Device::fill_signed_powers(Tensor& dst, std::uint32_t key, double factor) {
  if (dst.is_meta()) return;
  std::vector<float> values(static_cast<std::size_t>(dst.numel()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(factor * signed_power(key, static_cast<std::int64_t>(i)));
  }
  const auto bytes = std::as_bytes(std::span(values));
  if (dst.dtype() == DType::kFloat32) return copy_from_host(dst, bytes);
  Tensor wide = Tensor::empty(dst.shape(), DType::kFloat32, *this);
  copy_from_host(wide, bytes);
  cast(dst, wide);
}

}  // namespace gradsync
