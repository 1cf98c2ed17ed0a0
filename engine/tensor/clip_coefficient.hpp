#pragma once

#include "gradsync/core/float16.hpp"
#include "gradsync/tensor/dtype.hpp"

/// constexpr, so that GPU kernels have the same source.
namespace gradsync {

/// The nearest number of a floating-point type (ties to even).
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

/// min(1, max_norm / (norm + 1e-6)) with the dtype's arithmetic; the division is PyTorch's of a
/// number by a tensor, a product with the reciprocal. NaN stays NaN.
constexpr double clip_coefficient(double norm, double max_norm, DType dtype) noexcept {
  // An operation on floats in double, rounded to float, is the float operation (53 >= 2 * 24 + 2
  // bits).
  const bool wide = dtype == DType::kFloat64;
  const double epsilon = wide ? 1e-6 : static_cast<float>(1e-6);
  const double limit = wide ? max_norm : static_cast<float>(max_norm);
  const double reciprocal = round_to(dtype, 1 / round_to(dtype, norm + epsilon));
  const double coefficient = round_to(dtype, reciprocal * limit);
  return coefficient > 1 ? 1.0 : coefficient;
}

}  // namespace gradsync
