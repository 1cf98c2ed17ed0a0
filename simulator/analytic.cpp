#include "simulator/analytic.hpp"

#include <algorithm>
#include <vector>

namespace gradsync {

Seconds AnalyticTimer::duration(const std::shared_ptr<const Plan>& plan, Bytes bytes) {
  const auto [known, is_new] = known_.try_emplace({plan, bytes}, plan->base);
  if (!is_new) return known->second;
  Seconds total = plan->base;
  for (const PlanPhase& phase : plan->phases()) total += phase_duration(*plan, phase, bytes);
  return known->second = total;
}

Seconds AnalyticTimer::phase_duration(const Plan& plan, const PlanPhase& phase, Bytes bytes) {
  const double wire = static_cast<double>(bytes) * plan.wire_factor;
  std::vector<double> loads(links_->count());
  std::vector<std::size_t> route;
  for (const PlanEdge& edge : phase.edges) {
    links_->route(edge.from, edge.to, route);
    loads.resize(links_->count());
    for (const std::size_t link : route) loads[link] += edge.share * wire;
  }
  std::vector<double> times;
  double longest = plan.least(bytes).count();
  bottleneck_ = "library";
  for (const PlanEdge& edge : phase.edges) {
    links_->route(edge.from, edge.to, route);
    times.push_back(0);
    for (const std::size_t link : route) {
      const double time = loads[link] / links_->bandwidth(link).value;
      times.back() = std::max(times.back(), time);
      if (time <= longest * (1 + 1e-9)) continue;
      longest = time;
      bottleneck_ = links_->name(link);
    }
  }
  return plan.duration(phase, bytes, times);
}

}  // namespace gradsync
