#pragma once

#include <tuple>
#include <type_traits>
#include <utility>

#include "gradsync/tensor/kernels.hpp"

namespace gradsync {

/// Runs kernels on 16-bit tensors by way of float32 copies, rounding each result once. 16-bit
/// hardware would also round intermediate values.

inline bool is_16_bit(const Tensor& tensor) {
  return tensor.dtype() == DType::kFloat16 || tensor.dtype() == DType::kBFloat16;
}

inline Tensor cast_to(DType dtype, const Tensor& tensor) {
  Tensor result = Tensor::empty(tensor.shape(), dtype, tensor.device());
  result.device().cast(result, tensor);
  return result;
}

/// A kernel argument converted to float32. `finish` rounds results back; inputs are discarded, and
/// arguments that are not 16-bit tensors pass through.
template <typename Argument>
struct InFloat32 {
  Argument value;
  Argument get() { return value; }
  void finish() {}
};
template <>
struct InFloat32<const Tensor&> {
  explicit InFloat32(const Tensor& tensor)
      : wide(is_16_bit(tensor) && tensor.defined() ? cast_to(DType::kFloat32, tensor) : tensor) {}
  const Tensor& get() { return wide; }
  void finish() {}

  Tensor wide;
};
template <>
struct InFloat32<Tensor&> {
  explicit InFloat32(Tensor& tensor)
      : narrow(tensor), wide(tensor.defined() ? cast_to(DType::kFloat32, tensor) : tensor) {}
  Tensor& get() { return wide; }
  void finish() {
    if (narrow.defined()) narrow.device().cast(narrow, wide);
  }

  Tensor& narrow;
  Tensor wide;
};

/// Calls a kernel of `kernels` on float32 copies of its 16-bit arguments.
template <typename... Parameters>
void call_in_float32(Kernels& kernels, void (Kernels::*kernel)(Parameters...),
                     std::type_identity_t<Parameters>... arguments) {
  std::tuple<InFloat32<Parameters>...> wide{InFloat32<Parameters>{arguments}...};
  std::apply(
      [&](auto&... argument) {
        (kernels.*kernel)(argument.get()...);
        (argument.finish(), ...);
      },
      wide);
}

}  // namespace gradsync
