#pragma once

#include <cstdint>
#include <string>

#include "gradsync/core/error.hpp"
#include "gradsync/tensor/dtype.hpp"
#include "gradsync/tensor/half.hpp"

namespace gradsync {

/// The DType of a C++ element type.
template <typename T>
struct DTypeOf;
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::kFloat32;
};
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::kFloat64;
};
template <>
struct DTypeOf<Half> {
  static constexpr DType value = DType::kFloat16;
};
template <>
struct DTypeOf<BFloat16> {
  static constexpr DType value = DType::kBFloat16;
};
template <>
struct DTypeOf<std::int32_t> {
  static constexpr DType value = DType::kInt32;
};
template <>
struct DTypeOf<std::int64_t> {
  static constexpr DType value = DType::kInt64;
};
template <>
struct DTypeOf<std::uint8_t> {
  static constexpr DType value = DType::kUInt8;
};

/// The compute type of T: float for the 16-bit types, otherwise T.
template <typename T>
struct MathTypeOf {
  using type = T;
};
template <>
struct MathTypeOf<Half> {
  using type = float;
};
template <>
struct MathTypeOf<BFloat16> {
  using type = float;
};
template <typename T>
using MathType = typename MathTypeOf<T>::type;

/// Calls `function(T{})` with the element type of `dtype`.
template <typename Function>
decltype(auto) with_element_type(DType dtype, Function&& function) {
  switch (dtype) {
    case DType::kFloat32:
      return function(float{});
    case DType::kFloat64:
      return function(double{});
    case DType::kFloat16:
      return function(Half{});
    case DType::kBFloat16:
      return function(BFloat16{});
    case DType::kInt32:
      return function(std::int32_t{});
    case DType::kInt64:
      return function(std::int64_t{});
    case DType::kUInt8:
      return function(std::uint8_t{});
  }
  throw Error(ErrorCode::kInternal, "unknown dtype");
}

/// Same, for floating-point types only; `operation` names the caller in the error for other types.
template <typename Function>
decltype(auto) with_floating_type(DType dtype, const char* operation, Function&& function) {
  switch (dtype) {
    case DType::kFloat32:
      return function(float{});
    case DType::kFloat64:
      return function(double{});
    case DType::kFloat16:
      return function(Half{});
    case DType::kBFloat16:
      return function(BFloat16{});
    default:
      throw Error(ErrorCode::kInternal, std::string(operation) +
                                            " needs a floating-point tensor, found " +
                                            std::string(to_string(dtype)));
  }
}

}  // namespace gradsync
