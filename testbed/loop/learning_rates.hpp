#pragma once

#include <cstdint>
#include <vector>

#include "gradsync/optim/lr_schedule.hpp"
#include "gradsync/optim/optimizer.hpp"

namespace gradsync {

/// Sets the learning rates of the optimizer's groups: their initial rates times the schedule
/// (torch.optim.lr_scheduler).
///
/// One of the loop's parts: a subclass may use other rates.
class LearningRates {
 public:
  /// `optimizer` must outlive it.
  LearningRates(Optimizer& optimizer, const LrSchedule& schedule)
      : optimizer_(&optimizer), schedule_(schedule) {
    for (std::size_t group = 0; group < optimizer.group_count(); ++group) {
      base_rates_.push_back(optimizer.learning_rate(group));
    }
  }
  virtual ~LearningRates() = default;

  /// Sets the rates for `step`, the optimizer's next one.
  void set(std::int64_t step) {
    for (std::size_t group = 0; group < base_rates_.size(); ++group) {
      optimizer_->set_learning_rate(scheduled_lr(schedule_, base_rate(group, step), step), group);
    }
  }

 protected:
  /// The rate of a group in `step` before the schedule is applied.
  virtual double base_rate(std::size_t group, std::int64_t /*step*/) const {
    return base_rates_[group];
  }

 private:
  Optimizer* optimizer_;
  LrSchedule schedule_;
  std::vector<double> base_rates_;  // by parameter group
};

}  // namespace gradsync
