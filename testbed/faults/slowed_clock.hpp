#pragma once

#include "gradsync/core/clock.hpp"

namespace gradsync {

/// The clock of a slow rank: compute takes `factor` times as long. A factor of 1 changes no bit.
class SlowedClock final : public Clock {
 public:
  /// `clock` must outlive it.
  SlowedClock(Clock& clock, double factor) : clock_(&clock), factor_(factor) {}

  /// Applies to all later compute.
  void set_factor(double factor) noexcept { factor_ = factor; }

  Seconds now() const override { return clock_->now(); }
  void advance(Seconds duration) override { clock_->advance(duration * factor_); }
  void sleep(Seconds duration) override { clock_->sleep(duration); }
  void charge_flops(double flops) override { clock_->charge_flops(flops * factor_); }
  bool is_behind_host() const noexcept override { return clock_->is_behind_host(); }
  void stamp(Seconds& time) override { clock_->stamp(time); }
  void settle_stamps() override { clock_->settle_stamps(); }
  void forget_stamps() noexcept override { clock_->forget_stamps(); }

 private:
  Clock* clock_;
  double factor_;
};

}  // namespace gradsync
