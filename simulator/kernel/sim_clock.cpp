#include "gradsync/simulator/kernel/sim_clock.hpp"

#include <fmt/format.h>

#include <cmath>

#include "gradsync/core/error.hpp"

namespace gradsync {

void SimClock::advance(Seconds duration) {
  if (!std::isfinite(duration.count()) || duration.count() < 0) {
    throw Error(ErrorCode::kInternal,
                fmt::format("a rank cannot spend {} s of simulated time", duration.count()));
  }
  if (under_way_ > 0 && while_communicating_ != 1) {
    compute_slowly(duration);
  } else {
    debt_ += duration;
  }
}

void SimClock::compute_slowly(Seconds work) {
  settle();
  if (!nothing_under_way_) nothing_under_way_ = simgrid_compat::s4u::Semaphore::create(0);
  while (under_way_ > 0 && work.count() > 0) {
    const Seconds begin = engine_->now();
    is_computing_slowly_ = true;
    const bool woken = engine_->sleep_unless(*nothing_under_way_, work * while_communicating_);
    is_computing_slowly_ = false;
    if (!woken) return;
    // The wake-up may come from a collective that ended at the end of an earlier sleep: check
    // again.
    work -= (engine_->now() - begin) / while_communicating_;
  }
  if (work.count() > 0) debt_ += work;
}

void SimClock::collective_ended() {
  if (--under_way_ == 0 && is_computing_slowly_) nothing_under_way_->release();
}

void SimClock::charge_flops(double flops) {
  if (!(compute_rate_.value > 0)) {
    throw ConfigError({"", "/cluster/compute_rate", "a compute rate above 0 such as \"50Gf\"",
                       format_compute_rate(compute_rate_),
                       "a model that is computed in the simulator needs one"});
  }
  advance(Seconds(flops / compute_rate_.value));
}

void SimClock::settle() {
  if (debt_.count() <= 0) return;
  engine_->sleep(debt_);
  debt_ = Seconds(0);
}

}  // namespace gradsync
