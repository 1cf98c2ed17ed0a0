#pragma once

#include "gradsync/core/clock.hpp"

namespace gradsync::test {

/// A clock that stands still until it is told to move, and counts what it is charged.
class FakeClock final : public Clock {
 public:
  Seconds now() const override { return now_; }
  void advance(Seconds duration) override { now_ += duration; }
  void charge_flops(double flops) override { flops_ += flops; }

  double flops() const { return flops_; }

 private:
  Seconds now_{0};
  double flops_ = 0;
};

}  // namespace gradsync::test
