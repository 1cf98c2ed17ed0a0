#pragma once

#include <span>

#include "gradsync/autograd/parameter.hpp"

namespace gradsync {

/// Scales all gradients so that their total p-norm is at most `max_norm`, and returns the norm
/// before scaling (torch.nn.utils.clip_grad_norm_). `norm_type` is p > 0, infinity included.
///
/// The norm is the p-norm of the tensors' p-norms. The factor min(1, max_norm / (norm + 1e-6)) is
/// computed in the gradients' dtype and multiplied into every gradient, even if it is 1. Returns 0
/// if no parameter has a gradient. With `error_if_nonfinite`, a NaN or infinite norm throws
/// Error(kMisuse) and leaves the gradients unchanged; without it, such a norm turns them into 0 or
/// NaN.
///
/// Call it after backward has returned: the gradients are then the means over the ranks, so every
/// rank computes the same norm without communication.
double clip_grad_norm(std::span<const ParameterPtr> parameters, double max_norm,
                      double norm_type = 2.0, bool error_if_nonfinite = false);

/// Same, but leaves the norm on the gradients' device, as a float64 tensor of one element;
/// undefined if no parameter has a gradient. The host does not wait, except for
/// `error_if_nonfinite`.
Tensor clip_grad_norm_on_device(std::span<const ParameterPtr> parameters, double max_norm,
                                double norm_type = 2.0, bool error_if_nonfinite = false);

}  // namespace gradsync
