#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "gradsync/autograd/parameter.hpp"

namespace gradsync {

/// Updates parameters from their gradients: torch.optim. Parameters come in groups, each with its
/// own learning rate and other options. A parameter with an undefined gradient is skipped entirely
/// (no decay, no momentum, no step count). Parameters on the meta device are skipped too, since
/// they have no data to update. Belongs to one rank.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  virtual void step() = 0;

  /// Makes all gradients undefined (set_to_none), or fills the defined ones with 0.
  void zero_grad(bool set_to_none = true);

  std::size_t group_count() const noexcept { return groups_.size(); }
  const std::vector<ParameterPtr>& parameters(std::size_t group = 0) const {
    return groups_.at(group).parameters;
  }
  double learning_rate(std::size_t group = 0) const { return groups_.at(group).lr; }
  /// Sets the learning rate of one group, starting with the next `step`.
  void set_learning_rate(double lr, std::size_t group = 0) { groups_.at(group).lr = lr; }

 protected:
  struct Group {
    std::vector<ParameterPtr> parameters;
    double lr;
  };
  /// Throws Error(kMisuse) if there are no parameters or one is in two groups.
  explicit Optimizer(std::vector<Group> groups);

  static bool is_updated(const Parameter& parameter) {
    return parameter.grad.defined() && !parameter.data.is_meta();
  }

  /// Number of states that a group needs: one per parameter, or none if all are on the meta device.
  static std::size_t state_size(const std::vector<ParameterPtr>& parameters) {
    const bool all_meta = std::ranges::all_of(
        parameters, [](const ParameterPtr& parameter) { return parameter->data.is_meta(); });
    return all_meta ? 0 : parameters.size();
  }

  /// The part of a concrete optimizer's groups that the base class keeps.
  template <typename ParameterGroup>
  static std::vector<Group> base_groups(const std::vector<ParameterGroup>& groups) {
    std::vector<Group> result;
    for (const ParameterGroup& group : groups) {
      result.push_back({group.parameters, group.options.lr});
    }
    return result;
  }

  std::vector<Group> groups_;
};

}  // namespace gradsync
