#include "engine/optim/clip_grad_norm.hpp"

#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "engine/core/error.hpp"
#include "engine/core/float16.hpp"

namespace gradsync {
namespace {

/// Rounds to the nearest number of a floating-point type.
double round_to(DType dtype, double value) {
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

/// The type that the norms are computed in: that of the gradients, if it is one.
DType common_dtype(const std::vector<Tensor>& gradients) {
  const DType first = gradients.front().dtype();
  bool same = true;
  for (const Tensor& gradient : gradients) {
    if (gradient.dtype() == DType::kFloat64) return DType::kFloat64;
    same &= gradient.dtype() == first;
  }
  return same ? first : DType::kFloat32;
}

/// The p-norm of the tensors' norms: of a tensor of their dtype.
double norm_of_norms(const std::vector<double>& norms, double norm_type, DType dtype) {
  const Tensor wide = Tensor::from<double>(norms, {static_cast<std::int64_t>(norms.size())});
  Tensor stacked = Tensor::empty(wide.shape(), dtype, cpu_device());
  cpu_device().cast(stacked, wide);
  return cpu_device().norm(stacked, norm_type);
}

/// min(1, max_norm / (norm + 1e-6)) with the dtype's arithmetic; the division is PyTorch's of a
/// number by a tensor, a product with the reciprocal. NaN stays NaN.
double clip_coefficient(double norm, double max_norm, DType dtype) {
  // An operation on floats in double, rounded to float, is the float operation (53 >= 2 * 24 + 2
  // bits).
  const auto rounded = [dtype](double value) { return round_to(dtype, value); };
  const bool wide = dtype == DType::kFloat64;
  const double epsilon = wide ? 1e-6 : static_cast<float>(1e-6);
  const double limit = wide ? max_norm : static_cast<float>(max_norm);
  const double reciprocal = rounded(1 / rounded(norm + epsilon));
  const double coefficient = rounded(reciprocal * limit);
  return coefficient > 1 ? 1.0 : coefficient;
}

}  // namespace

double clip_grad_norm(std::span<const ParameterPtr> parameters, double max_norm, double norm_type,
                      bool error_if_nonfinite) {
  std::vector<Tensor> gradients;
  for (const ParameterPtr& parameter : parameters) {
    if (parameter->grad.defined()) gradients.push_back(parameter->grad);
  }
  if (gradients.empty()) return 0;

  Device& device = gradients.front().device();
  std::vector<double> norms(gradients.size());
  device.norm_many(norms, gradients, norm_type);
  const DType dtype = common_dtype(gradients);
  const double norm = norm_of_norms(norms, norm_type, dtype);
  if (error_if_nonfinite && !std::isfinite(norm)) {
    throw Error(ErrorCode::kMisuse,
                fmt::format("the total norm of order {} of the gradients is {}, so they cannot be "
                            "clipped. To scale them by it all the same, set error_if_nonfinite to "
                            "false",
                            norm_type, norm));
  }
  const double coefficient = clip_coefficient(norm, max_norm, dtype);
  std::vector<TensorPair> in_place;
  for (Tensor& gradient : gradients) in_place.push_back({&gradient, &gradient});
  device.scale_many(in_place, coefficient);
  return norm;
}

}  // namespace gradsync
