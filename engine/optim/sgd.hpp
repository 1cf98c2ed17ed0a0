#pragma once

#include "gradsync/optim/optimizer.hpp"
#include "gradsync/optim/optimizer_options.hpp"
#include "gradsync/tensor/device.hpp"

namespace gradsync {

/// Stochastic gradient descent with momentum: torch/optim/sgd.py, single tensor.
class Sgd final : public Optimizer {
 public:
  struct ParameterGroup {
    std::vector<ParameterPtr> parameters;
    SgdOptions options;
  };

  /// Throws Error(kMisuse) where PyTorch raises ValueError: lr, momentum, weight_decay >= 0;
  /// nesterov needs momentum > 0 and dampening 0.
  explicit Sgd(std::vector<ParameterPtr> parameters, const SgdOptions& options = {});
  explicit Sgd(std::vector<ParameterGroup> groups);

  void step() override;

  /// Momentum buffers in the order of the group's parameters; undefined before the first update or
  /// if momentum is 0.
  const std::vector<Tensor>& momentum_buffers(std::size_t group = 0) const {
    return momentum_buffers_.at(group);
  }

 private:
  std::vector<SgdOptions> options_;  // by group; `lr` is unused after construction
  std::vector<std::vector<Tensor>> momentum_buffers_;
};

}  // namespace gradsync
