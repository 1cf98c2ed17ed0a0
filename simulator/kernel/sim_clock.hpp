#pragma once

#include "gradsync/core/clock.hpp"
#include "gradsync/simulator/kernel/sim_engine.hpp"

namespace gradsync {

/// The clock of one simulated rank. Time that the rank spends is added to a debt; the rank's actor
/// sleeps it off in one go when it touches the network (`settle`), so that a model of 400 gradients
/// costs an event a bucket and not one a gradient. `now()` is ahead of SimGrid's clock by the debt.
///
/// Compute may be slower beside communication: as long as the rank has a collective under way, from
/// its issue to its result here, a second of compute takes `while_communicating` seconds. That is
/// exact. What a rank computes with nothing under way is a debt as ever, because only the rank
/// itself can put something under way, and pays before it does. What it computes with something
/// under way is slept off at once, slowly, and when the last collective ends meanwhile it is woken:
/// what is left then takes its own time.
class SimClock final : public Clock {
 public:
  SimClock(SimEngine& engine, FlopsPerSecond compute_rate, double while_communicating = 1)
      : engine_(&engine), compute_rate_(compute_rate), while_communicating_(while_communicating) {}

  Seconds now() const override { return engine_->now() + debt_; }
  void advance(Seconds duration) override;
  /// flops / compute rate of the cluster's GPU.
  void charge_flops(double flops) override;

  /// The rank's actor: pays the debt. Other ranks run meanwhile.
  void settle();

  /// The rank's actor, or the kernel: the rank has one collective more under way, or one less.
  void collective_issued() noexcept { ++under_way_; }
  void collective_ended();

 private:
  void compute_slowly(Seconds work);

  SimEngine* engine_;
  FlopsPerSecond compute_rate_;
  double while_communicating_;
  Seconds debt_{0};
  int under_way_ = 0;
  bool is_computing_slowly_ = false;
  simgrid_compat::s4u::SemaphorePtr nothing_under_way_;  // made when first needed
};

}  // namespace gradsync
