#pragma once

#include <span>

#include "gradsync/autograd/parameter.hpp"

namespace gradsync {

/// Scales all gradients so that their common p-norm is at most `max_norm`, and returns the norm
/// before (torch.nn.utils.clip_grad_norm_). `norm_type` is p > 0, infinity included.
///
/// The norm is the p-norm of the tensors' p-norms; the factor min(1, max_norm / (norm + 1e-6)) is
/// taken in the gradients' dtype and multiplied into every gradient, also when it is 1. Returns 0
/// when no parameter has a gradient. With `error_if_nonfinite` a norm that is NaN or infinite
/// throws Error(kMisuse) and leaves the gradients alone; without it, such a norm makes them 0 or
/// NaN.
///
/// Call it after backward has returned: the gradients are then the means over the ranks, so every
/// rank finds the same norm and no communication is needed.
double clip_grad_norm(std::span<const ParameterPtr> parameters, double max_norm,
                      double norm_type = 2.0, bool error_if_nonfinite = false);

/// The same, and leaves the norm where it was computed: a float64 tensor of one element on the
/// gradients' device; undefined when no parameter has a gradient. The host waits for nothing,
/// unless it has to decide (`error_if_nonfinite`).
Tensor clip_grad_norm_on_device(std::span<const ParameterPtr> parameters, double max_norm,
                                double norm_type = 2.0, bool error_if_nonfinite = false);

}  // namespace gradsync
