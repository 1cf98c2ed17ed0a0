#include "gradsync/autograd/parameter.hpp"

#include <utility>

#include "gradsync/core/error.hpp"

namespace gradsync {

Parameter::Parameter(std::string name, Tensor data_, bool requires_grad)
    : data(std::move(data_)), name_(std::move(name)), requires_grad_(requires_grad) {}

void Parameter::add_gradient_hook(GradientHook hook) {
  hooks_.push_back(std::move(hook));
}

void Parameter::clear_gradient_hooks() {
  hooks_.clear();
}

void Parameter::accumulate(Tensor gradient, BackwardPass& pass) {
  if (gradient.defined()) {
    if (gradient.dtype() != data.dtype() || gradient.shape() != data.shape()) {
      throw Error(ErrorCode::kInternal,
                  "parameter " + name_ + " is " + std::string(to_string(data.dtype())) +
                      to_string(data.shape()) + " but was given a gradient that is " +
                      std::string(to_string(gradient.dtype())) + to_string(gradient.shape()));
    }
    if (grad.defined()) {
      grad.device().add(grad, gradient);
    } else {
      // `grad` is modified in place later (scaled, clipped), so it must not share storage with a
      // gradient that the graph still propagates.
      grad = gradient.unique() ? std::move(gradient) : gradient.clone();
    }
  }
  // Index loop: a hook may register further hooks.
  for (std::size_t i = 0; i < hooks_.size(); ++i) hooks_[i](*this, pass);
}

}  // namespace gradsync
