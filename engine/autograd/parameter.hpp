#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gradsync/tensor/tensor.hpp"

namespace gradsync {

class BackwardPass;
class Parameter;

/// Called after a gradient has been accumulated into `parameter.grad`, on the rank's thread, in the
/// order in which the backward pass reaches the parameters.
using GradientHook = std::function<void(Parameter& parameter, BackwardPass& pass)>;

/// A leaf of the graph that is trained: its value, its gradient and the hooks that watch it.
class Parameter {
 public:
  Parameter(std::string name, Tensor data, bool requires_grad = true);

  const std::string& name() const noexcept { return name_; }
  bool requires_grad() const noexcept { return requires_grad_; }

  Tensor data;
  /// Undefined until a backward pass reaches the parameter, and again after zero_grad(set_to_none).
  Tensor grad;

  /// Hooks run in the order of their registration.
  void add_gradient_hook(GradientHook hook);
  void clear_gradient_hooks();

  /// AccumulateGrad: takes `gradient` if `grad` is undefined, else adds it in place; then the hooks
  /// run. `gradient` may be undefined (nothing is added, the hooks run all the same).
  void accumulate(Tensor gradient, BackwardPass& pass);

 private:
  std::string name_;
  bool requires_grad_;
  std::vector<GradientHook> hooks_;
};

using ParameterPtr = std::shared_ptr<Parameter>;

/// State of a module that is not trained but synchronised (batch norm's running mean).
struct Buffer {
  std::string name;
  Tensor data;
};
using BufferPtr = std::shared_ptr<Buffer>;

}  // namespace gradsync
