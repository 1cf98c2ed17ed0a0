#pragma once

#include <cstdint>
#include <vector>

#include "gradsync/optim/lr_schedule.hpp"
#include "gradsync/optim/optimizer.hpp"

namespace gradsync {

/// Gives the optimizer's groups their learning rates: what they were made with, times the schedule
/// (torch.optim.lr_scheduler).
///
/// One of the loop's parts: a subclass may have other rates.
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

  /// The optimizer's next step is `step`.
  void set(std::int64_t step) {
    for (std::size_t group = 0; group < base_rates_.size(); ++group) {
      optimizer_->set_learning_rate(scheduled_lr(schedule_, base_rate(group, step), step), group);
    }
  }

 protected:
  /// The rate of a group in `step` where the schedule leaves it as it is.
  virtual double base_rate(std::size_t group, std::int64_t /*step*/) const {
    return base_rates_[group];
  }

 private:
  Optimizer* optimizer_;
  LrSchedule schedule_;
  std::vector<double> base_rates_;  // by parameter group
};

}  // namespace gradsync
