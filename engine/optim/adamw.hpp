#pragma once

#include "gradsync/optim/optimizer.hpp"
#include "gradsync/optim/optimizer_options.hpp"
#include "gradsync/tensor/device.hpp"

namespace gradsync {

/// AdamW (Loshchilov & Hutter 2019), in the order of operations of torch/optim/adamw.py (2.x,
/// single tensor). The state of a parameter is created at its first step with a gradient.
class AdamW final : public Optimizer {
 public:
  struct ParameterGroup {
    std::vector<ParameterPtr> parameters;
    AdamWOptions options;
  };
  /// State of one parameter; undefined tensors before its first update.
  struct State {
    std::int64_t step = 0;
    Tensor exp_avg;
    Tensor exp_avg_sq;
    Tensor max_exp_avg_sq;  ///< amsgrad only
  };

  /// Throws Error(kMisuse) where PyTorch raises ValueError: lr, eps, weight_decay >= 0, 0 <= beta <
  /// 1.
  explicit AdamW(std::vector<ParameterPtr> parameters, const AdamWOptions& options = {});
  explicit AdamW(std::vector<ParameterGroup> groups);

  void step() override;

  /// State in the order of the group's parameters.
  const std::vector<State>& state(std::size_t group = 0) const { return state_.at(group); }

 private:
  std::vector<AdamWOptions> options_;      // by group; `lr` is unused after construction
  std::vector<std::vector<State>> state_;  // by group and parameter
};

}  // namespace gradsync
