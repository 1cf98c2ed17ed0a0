#include "gradsync/testbed/loop/gradient_scaler.hpp"

#include <utility>

namespace gradsync {

void GradientScaler::divide_gradients(std::int64_t step) {
  if (scale(step) == 1) return;
  scale_gradients(*parameters_, 1 / scale(step));
  divisions_ = divisions(step) + 1;
  divided_step_ = step;
}

void backward(Graph& graph, const Variable& loss, double factor, const CallSite& site) {
  if (factor == 1) {
    graph.backward(loss, site);
    return;
  }
  Tensor gradient = loss.data.empty_like();
  gradient.device().fill(gradient, factor);
  graph.backward({loss}, {std::move(gradient)}, site);
}

void scale_gradients(const std::vector<ParameterPtr>& parameters, double factor) {
  for (const ParameterPtr& parameter : parameters) {
    Tensor& grad = parameter->grad;
    if (grad.defined()) grad.device().scale(grad, grad, factor);
  }
}

}  // namespace gradsync
