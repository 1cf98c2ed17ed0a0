#pragma once

#include "gradsync/optim/optimizer.hpp"
#include "gradsync/optim/optimizer_options.hpp"
#include "gradsync/tensor/device.hpp"

namespace gradsync {

/// AdamW (Loshchilov & Hutter 2019) with the order of operations of torch/optim/adamw.py of 2.x,
/// single tensor. State is made at the first step in which a parameter has a gradient.
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

  /// Throw Error(kMisuse) as PyTorch raises ValueError: lr, eps, weight_decay >= 0, 0 <= beta < 1.
  explicit AdamW(std::vector<ParameterPtr> parameters, const AdamWOptions& options = {});
  explicit AdamW(std::vector<ParameterGroup> groups);

  void step() override;

  /// In the order of the group's parameters.
  const std::vector<State>& state(std::size_t group = 0) const { return state_.at(group); }

 private:
  std::vector<AdamWOptions> options_;      // by group; `lr` there is not used after construction
  std::vector<std::vector<State>> state_;  // by group and parameter
};

}  // namespace gradsync
