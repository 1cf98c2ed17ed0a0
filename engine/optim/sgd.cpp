#include "gradsync/optim/sgd.hpp"

#include <utility>

#include "gradsync/optim/option_checks.hpp"

namespace gradsync {
namespace {

void check(const SgdOptions& o) {
  check_option(o.lr >= 0, "SGD", "learning rate", o.lr);
  check_option(o.momentum >= 0, "SGD", "momentum", o.momentum);
  check_option(o.weight_decay >= 0, "SGD", "weight_decay", o.weight_decay);
  if (o.nesterov && !(o.momentum > 0 && o.dampening == 0)) {
    throw Error(ErrorCode::kMisuse,
                "SGD: Nesterov momentum requires a momentum and zero dampening");
  }
}

}  // namespace

Sgd::Sgd(std::vector<ParameterPtr> parameters, const SgdOptions& options)
    : Sgd(std::vector<ParameterGroup>{{std::move(parameters), options}}) {}

Sgd::Sgd(std::vector<ParameterGroup> groups) : Optimizer(base_groups(groups)) {
  for (const ParameterGroup& group : groups) {
    check(group.options);
    options_.push_back(group.options);
    momentum_buffers_.emplace_back(state_size(group.parameters));
  }
}

void Sgd::step() {
  std::vector<SgdUpdate> updates;
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    const SgdOptions& options = options_[g];
    for (std::size_t i = 0; i < groups_[g].parameters.size(); ++i) {
      Parameter& parameter = *groups_[g].parameters[i];
      if (!is_updated(parameter)) continue;
      Tensor& buffer = momentum_buffers_[g][i];
      const bool first = !buffer.defined();
      if (first && options.momentum != 0) buffer = parameter.data.empty_like();
      updates.push_back({&parameter.data,
                         &parameter.grad,
                         &buffer,
                         {.lr = groups_[g].lr,
                          .momentum = options.momentum,
                          .dampening = options.dampening,
                          .weight_decay = options.weight_decay,
                          .nesterov = options.nesterov,
                          .maximize = options.maximize,
                          .first = first}});
    }
  }
  if (!updates.empty()) updates.front().param->device().sgd_many(updates);
}

}  // namespace gradsync
