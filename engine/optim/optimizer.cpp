#include "gradsync/optim/optimizer.hpp"

#include <unordered_set>
#include <utility>

#include "gradsync/core/error.hpp"

namespace gradsync {

Optimizer::Optimizer(std::vector<Group> groups) : groups_(std::move(groups)) {
  std::unordered_set<const Parameter*> seen;
  for (const Group& group : groups_) {
    for (const ParameterPtr& parameter : group.parameters) {
      if (!seen.insert(parameter.get()).second) {
        throw Error(ErrorCode::kMisuse,
                    "optimizer: parameter \"" + parameter->name() + "\" is given twice");
      }
    }
  }
  if (seen.empty()) throw Error(ErrorCode::kMisuse, "optimizer: got an empty parameter list");
}

void Optimizer::zero_grad(bool set_to_none) {
  for (const Group& group : groups_) {
    for (const ParameterPtr& parameter : group.parameters) {
      if (!parameter->grad.defined()) continue;
      if (set_to_none) {
        parameter->grad = Tensor{};
      } else {
        parameter->grad.device().fill(parameter->grad, 0);
      }
    }
  }
}

}  // namespace gradsync
