#pragma once

#include <cstdint>

namespace gradsync {

/// How the learning rate changes from step to step, in closed form: a linear warm-up (LinearLR),
/// then one of PyTorch's schedules, which starts counting when the warm-up is over (SequentialLR).
struct LrSchedule {
  enum class Kind { kConstant, kStep, kCosine };
  Kind kind = Kind::kConstant;
  /// kStep: multiply by `gamma` every `step_size` steps (StepLR).
  std::int64_t step_size = 1;
  double gamma = 0.1;
  /// kCosine: fall to `min_lr` in `total_steps` steps and stay there (CosineAnnealingLR, which
  /// would rise again).
  std::int64_t total_steps = 1;
  double min_lr = 0;
  /// Rise from warmup_start_factor * lr to lr in the first `warmup_steps` steps.
  std::int64_t warmup_steps = 0;
  double warmup_start_factor = 1.0 / 3;
  bool operator==(const LrSchedule&) const = default;
};

/// The learning rate of step `step` (0 is the first) for a base rate of `lr`. PyTorch computes each
/// rate from the one before; values agree within 1e-12 relative. Throws Error(kMisuse) for sizes
/// that are not positive.
double scheduled_lr(const LrSchedule& schedule, double lr, std::int64_t step);

}  // namespace gradsync
