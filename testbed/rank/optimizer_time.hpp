#pragma once

#include "gradsync/core/clock.hpp"
#include "gradsync/testbed/loop/loop_observer.hpp"

namespace gradsync {

/// Charges a rank's clock for clipping and the update of the parameters.
///
/// Where the model is computed, by the arithmetic an element. Where it is replayed, clipping and
/// update together take what the profile says, or what they really take if that is more.
class OptimizerTime final : public LoopObserver {
 public:
  /// Floating-point operations an element: squaring, adding and scaling in the clip, and the
  /// arithmetic of an update as torch/optim/adamw.py and sgd.py write it.
  static constexpr double kClipFlops = 3;
  static constexpr double kAdamWFlops = 14;
  static constexpr double kSgdFlops = 6;

  /// What is charged for a step.
  struct Cost {
    bool replayed = false;
    Seconds replayed_time{0};
    double clip_flops = 0;
    double update_flops = 0;
  };

  /// `clock` must outlive it.
  OptimizerTime(Clock& clock, const Cost& cost) : clock_(&clock), cost_(cost) {}

  void before_optimizer(const LoopPosition&) override { begin_ = clock_->now(); }

  void after_clip(const LoopPosition&, const std::optional<Clipping>& clipping) override {
    if (clipping && !cost_.replayed) clock_->charge_flops(cost_.clip_flops);
  }

  void after_optimizer(const LoopPosition&) override {
    if (!cost_.replayed) {
      clock_->charge_flops(cost_.update_flops);
      return;
    }
    const Seconds spent = clock_->is_behind_host() ? Seconds{0} : clock_->now() - begin_;
    if (spent < cost_.replayed_time) clock_->advance(cost_.replayed_time - spent);
  }

 private:
  Clock* clock_;
  Cost cost_;
  Seconds begin_{0};
};

}  // namespace gradsync
