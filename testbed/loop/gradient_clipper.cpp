#include "gradsync/testbed/loop/gradient_clipper.hpp"

#include <algorithm>

#include "gradsync/optim/clip_grad_norm.hpp"

namespace gradsync {

double clip_coefficient(double norm, double max_norm) {
  constexpr double kEpsilon = 1e-6;  // as in clip_grad_norm
  return std::min(1.0, max_norm / (norm + kEpsilon));
}

std::optional<Clipping> GradientClipper::clip(const LoopPosition&) {
  if (!options_.max_norm) return std::nullopt;
  return clip_to(*options_.max_norm);
}

Clipping GradientClipper::clip_to(double max_norm) const {
  const Tensor norm = clip_grad_norm_on_device(*parameters_, max_norm, options_.norm_type,
                                               options_.error_if_nonfinite);
  return {max_norm, norm.defined() ? norm.device().read(norm) : nullptr, std::nullopt};
}

}  // namespace gradsync
