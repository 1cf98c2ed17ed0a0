#pragma once

#include "engine/core/clock.hpp"
#include "simulator/sim_engine.hpp"

namespace gradsync {

/// The clock of one simulated rank. Time that the rank spends is added to a debt; the rank's actor
/// sleeps it off in one go when it touches the network (`settle`), so that a model of 400 gradients
/// costs an event a bucket and not one a gradient. `now()` is ahead of SimGrid's clock by the debt.
class SimClock final : public Clock {
 public:
  SimClock(SimEngine& engine, FlopsPerSecond compute_rate)
      : engine_(&engine), compute_rate_(compute_rate) {}

  Seconds now() const override { return engine_->now() + debt_; }
  void advance(Seconds duration) override;
  /// flops / compute rate of the cluster's GPU.
  void charge_flops(double flops) override;

  /// The rank's actor: pays the debt. Other ranks run meanwhile.
  void settle();

 private:
  SimEngine* engine_;
  FlopsPerSecond compute_rate_;
  Seconds debt_{0};
};

}  // namespace gradsync
