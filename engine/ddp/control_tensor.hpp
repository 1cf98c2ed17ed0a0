#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gradsync/tensor/tensor.hpp"

namespace gradsync {

/// The device of DDP's own small integer tensors (counts, shapes, indices): the parameters' device,
/// because NCCL moves nothing else, or the CPU if the parameters are meta, because control data
/// needs real bytes on every backend.
inline Device& control_device(const Tensor& parameter) {
  return parameter.is_meta() ? cpu_device() : parameter.device();
}

template <typename T>
Tensor control_tensor(const std::vector<T>& values, DType dtype, Device& device) {
  Tensor tensor = Tensor::empty({static_cast<std::int64_t>(values.size())}, dtype, device);
  device.copy_from_host(tensor, std::as_bytes(std::span(values)));
  return tensor;
}

template <typename T>
std::vector<T> control_values(const Tensor& tensor) {
  std::vector<T> values(static_cast<std::size_t>(tensor.numel()));
  tensor.device().copy_to_host(std::as_writable_bytes(std::span(values)), tensor);
  return values;
}

}  // namespace gradsync
