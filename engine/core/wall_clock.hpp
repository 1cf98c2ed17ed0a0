#pragma once

#include <chrono>

#include "gradsync/core/clock.hpp"

namespace gradsync {

/// The clock of real runs: CLOCK_MONOTONIC relative to an origin shared by the ranks of a run (see
/// share_clock_origin), so that times of ranks on one machine are comparable.
class WallClock final : public Clock {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  explicit WallClock(TimePoint origin = std::chrono::steady_clock::now()) : origin_(origin) {}

  Seconds now() const override { return std::chrono::steady_clock::now() - origin_; }
  /// Sleeps, then spins through the last 50 us: a plain sleep overshoots by the timer slack.
  void advance(Seconds duration) override;
  void charge_flops(double) override {}

 private:
  TimePoint origin_;
};

}  // namespace gradsync
