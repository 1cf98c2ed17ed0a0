#pragma once

#include <tuple>
#include <type_traits>
#include <utility>

#include "gradsync/tensor/kernels.hpp"

namespace gradsync {

/// How a device that computes in float32 takes 16-bit tensors: copies in float32, and one rounding
/// of each result, where 16-bit hardware would round in between as well.

inline bool is_16_bit(const Tensor& tensor) {
  return tensor.dtype() == DType::kFloat16 || tensor.dtype() == DType::kBFloat16;
}

inline Tensor cast_to(DType dtype, const Tensor& tensor) {
  Tensor result = Tensor::empty(tensor.shape(), dtype, tensor.device());
  result.device().cast(result, tensor);
  return result;
}

/// An argument of a kernel as float32: results are rounded back by `finish`, inputs need nothing,
/// and what is no 16-bit tensor passes through.
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
