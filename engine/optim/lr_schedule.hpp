#pragma once

#include <cstdint>

namespace gradsync {

/// Learning rate schedule in closed form: a linear warm-up (LinearLR) followed by one of PyTorch's
/// schedules, which starts counting after the warm-up (SequentialLR).
struct LrSchedule {
  enum class Kind { kConstant, kStep, kCosine };
  Kind kind = Kind::kConstant;
  /// kStep: multiply by `gamma` every `step_size` steps (StepLR).
  std::int64_t step_size = 1;
  double gamma = 0.1;
  /// kCosine: decay to `min_lr` over `total_steps` steps and stay there (CosineAnnealingLR would
  /// rise again).
  std::int64_t total_steps = 1;
  double min_lr = 0;
  /// Rise from warmup_start_factor * lr to lr over the first `warmup_steps` steps.
  std::int64_t warmup_steps = 0;
  double warmup_start_factor = 1.0 / 3;
  bool operator==(const LrSchedule&) const = default;
};

/// The learning rate of step `step` (0 is the first) for base rate `lr`. PyTorch computes each rate
/// from the previous one; values agree within 1e-12 relative. Throws Error(kMisuse) for sizes that
/// are not positive.
double scheduled_lr(const LrSchedule& schedule, double lr, std::int64_t step);

}  // namespace gradsync
