#include "gradsync/optim/lr_schedule.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "gradsync/core/error.hpp"

namespace gradsync {

double scheduled_lr(const LrSchedule& schedule, double lr, std::int64_t step) {
  if (schedule.step_size < 1 || schedule.total_steps < 1 || schedule.warmup_steps < 0) {
    throw Error(
        ErrorCode::kMisuse,
        "learning-rate schedule: step_size and total_steps must be at least 1, warmup_steps "
        "at least 0");
  }
  if (step < schedule.warmup_steps) {
    const double start = schedule.warmup_start_factor;
    const double progress = static_cast<double>(step) / static_cast<double>(schedule.warmup_steps);
    return lr * (start + (1 - start) * progress);
  }
  const std::int64_t steps = step - schedule.warmup_steps;
  switch (schedule.kind) {
    case LrSchedule::Kind::kConstant:
      return lr;
    case LrSchedule::Kind::kStep:
      return lr * std::pow(schedule.gamma, static_cast<double>(steps / schedule.step_size));
    case LrSchedule::Kind::kCosine: {
      const double progress = static_cast<double>(std::min(steps, schedule.total_steps)) /
                              static_cast<double>(schedule.total_steps);
      return schedule.min_lr +
             (lr - schedule.min_lr) * (1 + std::cos(std::numbers::pi * progress)) / 2;
    }
  }
  return lr;
}

}  // namespace gradsync
