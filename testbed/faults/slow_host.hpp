#pragma once

#include "gradsync/testbed/faults/rank_faults.hpp"
#include "gradsync/testbed/faults/rank_imperfections.hpp"
#include "gradsync/testbed/faults/slowed_clock.hpp"
#include "gradsync/testbed/loop/loop_observer.hpp"

namespace gradsync {

/// The host of a rank: its compute speed in each step, and its loader stalls. Unaffected without
/// faults and imperfections.
class SlowHost final : public LoopObserver {
 public:
  /// `clock`, `faults` and `imperfections` must outlive it.
  SlowHost(Clock& clock, const RankFaults& faults, const ImperfectionSpec& imperfections, int rank)
      : fault_factor_(faults.compute_factor()),
        imperfections_(imperfections, rank),
        clock_(clock, compute_factor(0)) {}

  /// The rank's clock on this host.
  Clock& clock() noexcept { return clock_; }

  void before_data(const LoopPosition& at) override {
    if (at.micro_step > 0) return;
    clock_.set_factor(compute_factor(at.step));
    // A stall is idle time, not compute, so a slow rank does not stretch it.
    const Seconds stall = imperfections_.loader_stall(at.step);
    if (stall > Seconds{0}) clock_.sleep(stall);
  }

 private:
  double compute_factor(std::int64_t step) const {
    return fault_factor_ * imperfections_.compute_factor(step);
  }

  double fault_factor_;
  RankImperfections imperfections_;
  SlowedClock clock_;
};

}  // namespace gradsync
