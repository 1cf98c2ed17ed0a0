#pragma once

#include "gradsync/core/clock.hpp"
#include "gradsync/testbed/loop/loop_observer.hpp"

namespace gradsync {

/// Charges clipping and the parameter update to the rank's clock.
///
/// For a computed model, charges the floating-point operations per element. For a replayed model,
/// clipping and update together take the time in the profile, or the real time if that is longer.
class OptimizerTime final : public LoopObserver {
 public:
  /// Floating-point operations per element: squaring, adding and scaling in the clip, and the
  /// arithmetic of an update as written in torch/optim/adamw.py and sgd.py.
  static constexpr double kClipFlops = 3;
  static constexpr double kAdamWFlops = 14;
  static constexpr double kSgdFlops = 6;

  /// The cost of one step.
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
