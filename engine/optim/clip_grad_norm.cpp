#include "gradsync/optim/clip_grad_norm.hpp"

#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "gradsync/core/error.hpp"
#include "gradsync/tensor/host_read.hpp"

namespace gradsync {
namespace {

/// The dtype of the norm computation: the common dtype of the gradients, if they have one.
DType common_dtype(const std::vector<Tensor>& gradients) {
  const DType first = gradients.front().dtype();
  bool same = true;
  for (const Tensor& gradient : gradients) {
    if (gradient.dtype() == DType::kFloat64) return DType::kFloat64;
    same &= gradient.dtype() == first;
  }
  return same ? first : DType::kFloat32;
}

/// The p-norm of the tensors' norms, computed in `dtype`.
Tensor norm_of_norms(const Tensor& norms, double p, DType dtype) {
  Tensor stacked = Tensor::empty(norms.shape(), dtype, norms.device());
  norms.device().cast(stacked, norms);
  return norms.device().norms_of({&stacked, 1}, p);
}

}  // namespace

Tensor clip_grad_norm_on_device(std::span<const ParameterPtr> parameters, double max_norm,
                                double norm_type, bool error_if_nonfinite) {
  std::vector<Tensor> gradients;
  for (const ParameterPtr& parameter : parameters) {
    if (parameter->grad.defined()) gradients.push_back(parameter->grad);
  }
  if (gradients.empty()) return {};

  Device& device = gradients.front().device();
  const DType dtype = common_dtype(gradients);
  const Tensor norm = norm_of_norms(device.norms_of(gradients, norm_type), norm_type, dtype);
  if (error_if_nonfinite) {
    if (const double value = device.read(norm)->value(); !std::isfinite(value)) {
      throw Error(ErrorCode::kMisuse,
                  fmt::format("the total norm of order {} of the gradients is {}, so they cannot "
                              "be clipped. To scale them by it all the same, set "
                              "error_if_nonfinite to false",
                              norm_type, value));
    }
  }
  std::vector<TensorPair> in_place;
  for (Tensor& gradient : gradients) in_place.push_back({&gradient, &gradient});
  device.clip_many(in_place, norm, max_norm, dtype);
  return norm;
}

double clip_grad_norm(std::span<const ParameterPtr> parameters, double max_norm, double norm_type,
                      bool error_if_nonfinite) {
  const Tensor norm = clip_grad_norm_on_device(parameters, max_norm, norm_type, error_if_nonfinite);
  return norm.defined() ? norm.device().read(norm)->value() : 0;
}

}  // namespace gradsync
