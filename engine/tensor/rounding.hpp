#pragma once

#include "gradsync/core/float16.hpp"
#include "gradsync/tensor/dtype.hpp"

/// constexpr, so that GPU kernels share the source.
namespace gradsync {

/// Rounds to the nearest value of a floating-point type (ties to even).
constexpr double round_to(DType dtype, double value) noexcept {
  switch (dtype) {
    case DType::kFloat64:
      return value;
    case DType::kFloat16:
      return float16_to_float(float_to_float16(static_cast<float>(value)));
    case DType::kBFloat16:
      return bfloat16_to_float(float_to_bfloat16(static_cast<float>(value)));
    default:
      return static_cast<float>(value);
  }
}

}  // namespace gradsync
