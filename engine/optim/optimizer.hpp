#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gradsync/autograd/parameter.hpp"

namespace gradsync {

/// Updates parameters from their gradients: torch.optim. Parameters come in groups, each with its
/// own learning rate and other options; a parameter whose gradient is undefined is skipped entirely
/// (no decay, no momentum, its step is not counted), and so is one on the meta device: it has
/// nothing to update, and its state would be shapes alone. Belongs to one rank.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  virtual void step() = 0;

  /// Makes all gradients undefined, or fills those that are defined with 0.
  void zero_grad(bool set_to_none = true);

  std::size_t group_count() const noexcept { return groups_.size(); }
  const std::vector<ParameterPtr>& parameters(std::size_t group = 0) const {
    return groups_.at(group).parameters;
  }
  double learning_rate(std::size_t group = 0) const { return groups_.at(group).lr; }
  /// Of one group; the next `step` uses it.
  void set_learning_rate(double lr, std::size_t group = 0) { groups_.at(group).lr = lr; }

 protected:
  struct Group {
    std::vector<ParameterPtr> parameters;
    double lr;
  };
  /// Throws Error(kMisuse) for no parameter at all or one that stands in two groups.
  explicit Optimizer(std::vector<Group> groups);

  static bool is_updated(const Parameter& parameter) {
    return parameter.grad.defined() && !parameter.data.is_meta();
  }

  /// The part of a concrete optimizer's groups that this class keeps.
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
