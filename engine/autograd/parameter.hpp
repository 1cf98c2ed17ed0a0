#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gradsync/tensor/tensor.hpp"

namespace gradsync {

class BackwardPass;
class Parameter;

/// Called on the rank's thread after a gradient has been accumulated into `parameter.grad`, in the
/// order in which the backward pass reaches the parameters.
using GradientHook = std::function<void(Parameter& parameter, BackwardPass& pass)>;

/// A trainable leaf of the graph: its value, its gradient and its gradient hooks.
class Parameter {
 public:
  Parameter(std::string name, Tensor data, bool requires_grad = true);

  const std::string& name() const noexcept { return name_; }
  bool requires_grad() const noexcept { return requires_grad_; }

  Tensor data;
  /// Undefined until a backward pass reaches the parameter, and again after zero_grad(set_to_none).
  Tensor grad;

  /// Hooks run in registration order.
  void add_gradient_hook(GradientHook hook);
  void clear_gradient_hooks();

  /// AccumulateGrad: stores `gradient` if `grad` is undefined, otherwise adds it in place; then
  /// runs the hooks. An undefined `gradient` adds nothing, but the hooks still run.
  void accumulate(Tensor gradient, BackwardPass& pass);

 private:
  std::string name_;
  bool requires_grad_;
  std::vector<GradientHook> hooks_;
};

using ParameterPtr = std::shared_ptr<Parameter>;

/// Module state that is synchronized but not trained, such as batch norm's running mean.
struct Buffer {
  std::string name;
  Tensor data;
};
using BufferPtr = std::shared_ptr<Buffer>;

}  // namespace gradsync
