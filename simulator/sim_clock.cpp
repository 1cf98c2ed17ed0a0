#include "simulator/sim_clock.hpp"

#include <fmt/format.h>

#include <cmath>

#include "engine/core/error.hpp"

namespace gradsync {

void SimClock::advance(Seconds duration) {
  if (!std::isfinite(duration.count()) || duration.count() < 0) {
    throw Error(ErrorCode::kInternal,
                fmt::format("a rank cannot spend {} s of simulated time", duration.count()));
  }
  debt_ += duration;
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
