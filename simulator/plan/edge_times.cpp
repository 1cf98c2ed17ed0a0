#include "gradsync/simulator/plan/edge_times.hpp"

#include <unordered_map>

namespace gradsync {

EdgeTimes edge_times(const PlanPhase& phase, double wire, const Route& route,
                     const LinkBandwidth& bandwidth) {
  std::unordered_map<std::size_t, double> loads;
  std::vector<std::size_t> links;
  for (const PlanEdge& edge : phase.edges) {
    route(edge.from, edge.to, links);
    for (const std::size_t link : links) loads[link] += edge.share * wire;
  }
  EdgeTimes times;
  for (const PlanEdge& edge : phase.edges) {
    route(edge.from, edge.to, links);
    double shared = 0, alone = 0;
    std::size_t bottleneck = 0;
    for (const std::size_t link : links) {
      const double rate = bandwidth(link).value;
      alone = std::max(alone, edge.share * wire / rate);
      // Loads that differ only by rounding count as equal.
      if (loads[link] / rate <= shared * (1 + 1e-9)) continue;
      shared = loads[link] / rate;
      bottleneck = link;
    }
    times.shared.push_back(shared);
    times.alone.push_back(alone);
    times.bottleneck.push_back(bottleneck);
  }
  return times;
}

}  // namespace gradsync
