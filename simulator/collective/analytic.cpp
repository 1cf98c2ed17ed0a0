#include "gradsync/simulator/collective/analytic.hpp"

#include <algorithm>
#include <vector>

#include "gradsync/simulator/plan/edge_times.hpp"

namespace gradsync {

Seconds AnalyticTimer::duration(const std::shared_ptr<const Plan>& plan, Bytes bytes) {
  const auto [known, is_new] = known_.try_emplace({plan, bytes}, plan->base);
  if (!is_new) return known->second;
  Seconds total = plan->base;
  for (const PlanPhase& phase : plan->phases()) total += phase_duration(*plan, phase, bytes);
  return known->second = total;
}

Seconds AnalyticTimer::exchange(const std::vector<Flow>& flows) {
  std::map<std::size_t, double> load;
  std::vector<std::size_t> route;
  for (const Flow& flow : flows) {
    route.clear();
    links_->route(flow.from, flow.to, route);
    for (const std::size_t link : route) load[link] += flow.bytes;
  }
  double longest = 0;
  bottleneck_ = "library";
  for (const auto& [link, bytes] : load) {
    const double seconds = bytes / links_->bandwidth(link).value;
    if (seconds <= longest) continue;
    longest = seconds;
    bottleneck_ = links_->name(link);
  }
  return Seconds(longest);
}

Seconds AnalyticTimer::phase_duration(const Plan& plan, const PlanPhase& phase, Bytes bytes) {
  const double wire = static_cast<double>(bytes) * plan.wire_factor;
  const EdgeTimes times = edge_times(
      phase, wire,
      [this](int from, int to, std::vector<std::size_t>& links) { links_->route(from, to, links); },
      [this](std::size_t link) { return links_->bandwidth(link); });
  double longest = 0;
  bottleneck_ = "library";
  for (const PlanEdge& edge : phase.edges) {
    longest = std::max(longest, plan.least(edge, bytes).count());
  }
  for (std::size_t e = 0; e < times.shared.size(); ++e) {
    if (times.shared[e] <= longest * (1 + 1e-9)) continue;
    longest = times.shared[e];
    bottleneck_ = links_->name(times.bottleneck[e]);
  }
  return plan.duration(phase, bytes, times);
}

}  // namespace gradsync
