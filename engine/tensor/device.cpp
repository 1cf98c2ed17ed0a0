#include "engine/tensor/device.hpp"

#include <vector>

#include "engine/core/random.hpp"
#include "engine/tensor/tensor.hpp"

namespace gradsync {

void Device::copy_many(std::span<const TensorPair> pairs) {
  for (const TensorPair& pair : pairs) copy(*pair.dst, *pair.src);
}

void Device::scale_many(std::span<const TensorPair> pairs, double factor) {
  for (const TensorPair& pair : pairs) scale(*pair.dst, *pair.src, factor);
}

void Device::norm_many(std::span<double> norms, std::span<const Tensor> tensors, double p) {
  for (std::size_t i = 0; i < tensors.size(); ++i) norms[i] = norm(tensors[i], p);
}

void Device::adamw_many(std::span<const AdamWUpdate> updates) {
  for (const AdamWUpdate& u : updates) {
    adamw_step(*u.param, *u.grad, *u.exp_avg, *u.exp_avg_sq, *u.max_exp_avg_sq, u.step);
  }
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
