#include "gradsync/simulator/kernel/transfers.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace gradsync {

void Transfers::start(const LinkLoads::Way& way, const std::pair<Host*, Host*>& ends, double bytes,
                      Seconds latency, Continuation arrived) {
  Flow& flow = new_flow();
  flow.way = &way;
  flow.ends = ends;
  flow.bytes = std::ceil(bytes);  // SimGrid counts whole bytes
  flow.latency = latency;
  flow.arrived = std::move(arrived);
  const bool alone = enter(way);
  if (alone && !solve_all_ && loads_->is_plain(way)) {
    run_alone(flow);
  } else {
    solve(flow, flow.bytes);
  }
}

Transfers::Flow& Transfers::new_flow() {
  if (free_.empty()) return flows_.emplace_back();
  Flow& flow = *free_.back();
  free_.pop_back();
  flow.is_solved = false;
  flow.is_over = false;
  return flow;
}

bool Transfers::enter(const LinkLoads::Way& way) {
  bool alone = true;
  for (const LinkLoads::Number link : way) {
    if (link >= uses_.size()) uses_.resize(link + 1);
    if (uses_[link].alone != nullptr) hand_over(*uses_[link].alone);
    alone = alone && uses_[link].flows == 0;
    ++uses_[link].flows;
  }
  return alone;
}

void Transfers::run_alone(Flow& flow) {
  flow.bytes_per_second = std::numeric_limits<double>::infinity();
  for (const LinkLoads::Number link : *flow.way) {
    flow.bytes_per_second = std::min(flow.bytes_per_second, loads_->bandwidth(link).value);
    uses_[link].alone = &flow;
  }
  flow.begin = engine_->now();
  const Seconds duration{flow.bytes / flow.bytes_per_second};
  flow.end = flow.begin + duration;
  flow.calls = 1;
  engine_->after(duration, {[this, own = &flow] { left(*own, false); }});
}

void Transfers::solve(Flow& flow, double bytes) {
  flow.is_solved = true;
  ++solved_;
  ++flow.calls;
  loads_->start_flow(*flow.way, [&] {
    engine_->transfer(flow.ends.first, flow.ends.second, bytes,
                      {[this, own = &flow] { left(*own, true); }});
  });
}

void Transfers::hand_over(Flow& flow) {
  for (const LinkLoads::Number link : *flow.way) uses_[link].alone = nullptr;
  const double rest = flow.bytes - flow.bytes_per_second * (engine_->now() - flow.begin).count();
  // Events at the same time are unordered: the flow may have ended without notification yet, or its
  // end, computed differently, is a rounding error away. SimGrid counts whole bytes; rounding up a
  // remainder that is whole except for a rounding error would add a byte in one run and not in the
  // next.
  if (engine_->now() >= flow.end || rest < 0.5) {
    leave(flow);
  } else {
    solve(flow, std::round(rest));
  }
}

void Transfers::left(Flow& flow, bool solved) {
  --flow.calls;
  if (solved == flow.is_solved) {
    leave(flow);
    if (flow.latency > Seconds{0} && flow.arrived.is_wanted()) {
      engine_->after(flow.latency, std::move(flow.arrived));
    } else {
      // Its consequences may need a slot for a new flow.
      const Continuation arrived = std::move(flow.arrived);
      arrived();
    }
  }
  if (flow.calls == 0) free_.push_back(&flow);
}

void Transfers::leave(Flow& flow) {
  if (flow.is_over) return;
  flow.is_over = true;
  for (const LinkLoads::Number link : *flow.way) {
    --uses_[link].flows;
    uses_[link].alone = nullptr;
  }
}

}  // namespace gradsync
