#pragma once

#include "gradsync/tensor/dtype.hpp"
#include "gradsync/tensor/rounding.hpp"

/// constexpr, so that GPU kernels share the source.
namespace gradsync {

/// min(1, max_norm / (norm + 1e-6)) in the dtype's arithmetic. The division follows PyTorch's
/// number / tensor: a multiplication by the reciprocal. NaN stays NaN.
constexpr double clip_coefficient(double norm, double max_norm, DType dtype) noexcept {
  // A float operation computed in double and rounded to float gives the float result (53 >= 2 * 24
  // + 2 bits).
  const bool wide = dtype == DType::kFloat64;
  const double epsilon = wide ? 1e-6 : static_cast<float>(1e-6);
  const double limit = wide ? max_norm : static_cast<float>(max_norm);
  const double reciprocal = round_to(dtype, 1 / round_to(dtype, norm + epsilon));
  const double coefficient = round_to(dtype, reciprocal * limit);
  return coefficient > 1 ? 1.0 : coefficient;
}

}  // namespace gradsync
