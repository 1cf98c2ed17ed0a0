#include "engine/optim/clip_grad_norm.hpp"

#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "engine/core/error.hpp"

namespace gradsync {
namespace {

/// The p-norm of the tensors' norms, each already rounded to T, as PyTorch takes it: of a tensor of
/// dtype T.
template <typename T>
double norm_of_norms(const std::vector<double>& norms, double norm_type) {
  const std::vector<T> rounded(norms.begin(), norms.end());
  const Tensor stacked = Tensor::from<T>(rounded, {static_cast<std::int64_t>(norms.size())});
  return cpu_device().norm(stacked, norm_type);
}

/// min(1, max_norm / (norm + 1e-6)) with T's arithmetic; the division is PyTorch's for a number and
/// a tensor, a product with the reciprocal. NaN stays NaN.
template <typename T>
double clip_coefficient(double norm, double max_norm) {
  const T reciprocal = T{1} / (static_cast<T>(norm) + static_cast<T>(1e-6));
  const T coefficient = reciprocal * static_cast<T>(max_norm);
  return coefficient > T{1} ? 1.0 : static_cast<double>(coefficient);
}

}  // namespace

double clip_grad_norm(std::span<const ParameterPtr> parameters, double max_norm, double norm_type,
                      bool error_if_nonfinite) {
  std::vector<Tensor> gradients;
  for (const ParameterPtr& parameter : parameters) {
    if (parameter->grad.defined()) gradients.push_back(parameter->grad);
  }
  if (gradients.empty()) return 0;

  bool in_double = false;
  std::vector<double> norms;
  for (const Tensor& gradient : gradients) {
    norms.push_back(gradient.device().norm(gradient, norm_type));
    in_double |= gradient.dtype() == DType::kFloat64;
  }
  const double norm =
      in_double ? norm_of_norms<double>(norms, norm_type) : norm_of_norms<float>(norms, norm_type);
  if (error_if_nonfinite && !std::isfinite(norm)) {
    throw Error(ErrorCode::kMisuse,
                fmt::format("the total norm of order {} of the gradients is {}, so they cannot be "
                            "clipped. To scale them by it all the same, set error_if_nonfinite to "
                            "false",
                            norm_type, norm));
  }
  const double coefficient = in_double ? clip_coefficient<double>(norm, max_norm)
                                       : clip_coefficient<float>(norm, max_norm);
  for (Tensor& gradient : gradients) {
    gradient.device().scale(gradient, gradient, coefficient);
  }
  return norm;
}

}  // namespace gradsync
