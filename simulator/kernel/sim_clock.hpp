#pragma once

#include "gradsync/core/clock.hpp"
#include "gradsync/simulator/kernel/sim_engine.hpp"

namespace gradsync {

/// The clock of one simulated rank. Time spent by the rank is added to a debt, which the rank's
/// actor sleeps off at once when it uses the network (`settle`), so that a model of 400 gradients
/// costs one event per bucket instead of one per gradient. `now()` is SimGrid's clock plus the
/// debt.
///
/// Compute may be slower during communication: while the rank has a collective in flight, from its
/// issue to its result here, a second of compute takes `while_communicating` seconds. This is
/// exact. Compute with nothing in flight is a plain debt, because only the rank itself can issue a
/// collective, and it settles before it does. Compute with a collective in flight is slept off
/// immediately at the slower rate; when the last collective ends, the rank wakes up, and the rest
/// of the compute runs at full speed.
class SimClock final : public Clock {
 public:
  SimClock(SimEngine& engine, FlopsPerSecond compute_rate, double while_communicating = 1)
      : engine_(&engine), compute_rate_(compute_rate), while_communicating_(while_communicating) {}

  Seconds now() const override { return engine_->now() + debt_; }
  void advance(Seconds duration) override;
  /// flops / compute rate of the cluster's GPU.
  void charge_flops(double flops) override;

  /// On the rank's actor: pays the debt. Other ranks run in the meantime.
  void settle();

  /// On the rank's actor or in the kernel: the rank has one more, or one less, collective in
  /// flight.
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
  simgrid_compat::s4u::SemaphorePtr nothing_under_way_;  // created on first use
};

}  // namespace gradsync
