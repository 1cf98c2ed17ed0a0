#include "gradsync/optim/adamw.hpp"

#include <utility>

#include "gradsync/optim/option_checks.hpp"

namespace gradsync {
namespace {

void check(const AdamWOptions& o) {
  check_option(o.lr >= 0, "AdamW", "learning rate", o.lr);
  check_option(o.eps >= 0, "AdamW", "eps", o.eps);
  check_option(o.beta1 >= 0 && o.beta1 < 1, "AdamW", "beta1", o.beta1);
  check_option(o.beta2 >= 0 && o.beta2 < 1, "AdamW", "beta2", o.beta2);
  check_option(o.weight_decay >= 0, "AdamW", "weight_decay", o.weight_decay);
}

}  // namespace

AdamW::AdamW(std::vector<ParameterPtr> parameters, const AdamWOptions& options)
    : AdamW(std::vector<ParameterGroup>{{std::move(parameters), options}}) {}

AdamW::AdamW(std::vector<ParameterGroup> groups) : Optimizer(base_groups(groups)) {
  for (const ParameterGroup& group : groups) {
    check(group.options);
    options_.push_back(group.options);
    state_.emplace_back(state_size(group.parameters));
  }
}

void AdamW::step() {
  std::vector<AdamWUpdate> updates;
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    const AdamWOptions& options = options_[g];
    for (std::size_t i = 0; i < groups_[g].parameters.size(); ++i) {
      Parameter& parameter = *groups_[g].parameters[i];
      if (!is_updated(parameter)) continue;
      State& state = state_[g][i];
      if (state.step == 0) {
        state.exp_avg = parameter.data.zeros_like();
        state.exp_avg_sq = parameter.data.zeros_like();
        if (options.amsgrad) state.max_exp_avg_sq = parameter.data.zeros_like();
      }
      ++state.step;
      updates.push_back({&parameter.data,
                         &parameter.grad,
                         &state.exp_avg,
                         &state.exp_avg_sq,
                         &state.max_exp_avg_sq,
                         {.lr = groups_[g].lr,
                          .beta1 = options.beta1,
                          .beta2 = options.beta2,
                          .eps = options.eps,
                          .weight_decay = options.weight_decay,
                          .maximize = options.maximize,
                          .step = state.step}});
    }
  }
  if (!updates.empty()) updates.front().param->device().adamw_many(updates);
}

}  // namespace gradsync
