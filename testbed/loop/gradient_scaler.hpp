#pragma once

#include <cstdint>
#include <vector>

#include "gradsync/autograd/graph.hpp"
#include "gradsync/ddp/loop_position.hpp"
#include "gradsync/optim/optimizer.hpp"

namespace gradsync {

/// Multiplies the loss by a scale, and divides the gradients by it before they are used
/// (torch.amp.GradScaler). The scale is 1, because the jobs train in float32.
///
/// One of the loop's parts: a subclass may use another scale, or unscale at another point.
class GradientScaler {
 public:
  /// `parameters` must outlive it.
  explicit GradientScaler(const std::vector<ParameterPtr>& parameters) : parameters_(&parameters) {}
  virtual ~GradientScaler() = default;

  virtual double scale(std::int64_t /*step*/) const { return 1; }
  /// Called before the gradients are clipped.
  virtual void unscale(std::int64_t step) { divide_gradients(step); }
  /// Runs the optimizer's step.
  virtual void step(Optimizer& optimizer, std::int64_t /*step*/) { optimizer.step(); }

  /// Number of times the gradients of `step` have been unscaled.
  std::int64_t divisions(std::int64_t step) const { return step == divided_step_ ? divisions_ : 0; }

 protected:
  void divide_gradients(std::int64_t step);

 private:
  const std::vector<ParameterPtr>* parameters_;
  std::int64_t divided_step_ = -1;
  std::int64_t divisions_ = 0;  // in that step
};

/// Runs backward from `factor` * `loss`; `loss` is a scalar.
void backward(Graph& graph, const Variable& loss, double factor,
              const CallSite& site = CallSite(__builtin_FILE(), __builtin_LINE()));

/// Multiplies all gradients in place.
void scale_gradients(const std::vector<ParameterPtr>& parameters, double factor);

}  // namespace gradsync
