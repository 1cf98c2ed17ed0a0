#include "gradsync/simulator/plan/plan.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <unordered_map>

namespace gradsync {
namespace {

constexpr int kMostChunks = 512;  // messages of an edge, which the simulator sends one by one

/// The longest latency of `steps` consecutive hops around a ring.
Seconds longest_way(const std::vector<Seconds>& hops, int steps) {
  const auto n = static_cast<int>(hops.size());
  const Seconds round = std::accumulate(hops.begin(), hops.end(), Seconds(0));
  const int rest = steps % n;
  Seconds window{0};
  for (int i = 0; i < rest; ++i) window += hops[static_cast<std::size_t>(i)];
  Seconds longest = window;
  for (int i = 0; i < n; ++i) {
    window += hops[static_cast<std::size_t>((i + rest) % n)] - hops[static_cast<std::size_t>(i)];
    longest = std::max(longest, window);
  }
  return round * (steps / n) + (rest > 0 ? longest : Seconds(0));
}

}  // namespace

double Plan::chunk(Bytes bytes) const {
  const auto all = static_cast<double>(bytes);
  return chunk_bytes > 0 ? std::max(chunk_bytes, all / kMostChunks) : all;
}

int Plan::messages(const PlanPhase& phase, Bytes bytes) const {
  if (phase.steps > 0) return phase.steps;
  return std::max(1, static_cast<int>(std::ceil(static_cast<double>(bytes) / chunk(bytes))));
}

double Plan::part(const PlanPhase& phase, Bytes bytes, int number) const {
  if (phase.steps > 0) return 1.0 / phase.steps;
  const double full = chunk(bytes) / static_cast<double>(bytes);
  return std::min(full, 1 - full * number);
}

Seconds Plan::least(const PlanEdge& edge, Bytes bytes) const {
  const bool limited = edge.paced && limit.value > 0;
  return Seconds(limited ? static_cast<double>(bytes) / limit.value : 0.0);
}

Seconds Plan::duration(const PlanPhase& phase, Bytes bytes, const EdgeTimes& times) const {
  const std::vector<PlanEdge>& edges = phase.edges;
  const auto time = [&](std::size_t edge) {
    return std::max(Seconds(times.shared[edge]), least(edges[edge], bytes));
  };
  if (phase.in_step) {
    Seconds slowest{0};
    for (std::size_t e = 0; e < edges.size(); ++e) {
      slowest = std::max(slowest, time(e) + phase.steps * edges[e].latency);
    }
    return slowest;
  }
  if (phase.ring_size > 0) {
    Seconds slowest{0};
    const auto size = static_cast<std::size_t>(phase.ring_size);
    std::vector<Seconds> hops(size);
    for (std::size_t first = 0; first < edges.size(); first += size) {
      for (std::size_t i = 0; i < size; ++i) {
        hops[i] = edges[first + i].latency + time(first + i) / phase.steps;
        slowest = std::max(slowest, time(first + i) + edges[first + i].latency);
      }
      slowest = std::max(slowest, longest_way(hops, phase.steps));
    }
    return slowest;
  }
  return pipeline(phase, bytes, times);
}

Seconds Plan::pipeline(const PlanPhase& phase, Bytes bytes, const EdgeTimes& times) const {
  const std::vector<PlanEdge>& edges = phase.edges;
  // The first chunk has the full size, the last one the rest.
  const double first = part(phase, bytes, 0);
  // The pipeline fills and drains through links that few edges use.
  const auto alone = [&](std::size_t e) {
    return std::max(Seconds(times.alone[e]), least(edges[e], bytes));
  };
  const auto hop = [&](std::size_t e) { return alone(e) * first; };
  std::vector<Seconds> ahead(edges.size());   // until the edge's first chunk arrives
  std::vector<Seconds> behind(edges.size());  // from its last chunk's departure to the end
  for (std::size_t e = 0; e < edges.size(); ++e) {
    for (const int before : edges[e].after) {
      const auto b = static_cast<std::size_t>(before);
      ahead[e] = std::max(ahead[e], ahead[b] + hop(b) + edges[b].latency);
    }
  }
  for (std::size_t e = edges.size(); e-- > 0;) {
    behind[e] += edges[e].latency;
    for (const int before : edges[e].after) {
      const auto b = static_cast<std::size_t>(before);
      behind[b] = std::max(behind[b], hop(e) + behind[e]);
    }
  }
  struct Shared {
    Seconds ahead, behind, time;
  };
  std::unordered_map<std::size_t, Shared> links;
  Seconds most = phase.latency, least_of_all = phase.latency;
  for (std::size_t e = 0; e < edges.size(); ++e) {
    const Seconds time = std::max(Seconds(times.shared[e]), least(edges[e], bytes));
    most = std::max(most, ahead[e] + time + behind[e]);
    least_of_all = std::max(least_of_all, ahead[e] + alone(e) + behind[e]);
    Shared& link =
        links.try_emplace(times.bottleneck[e], Shared{ahead[e], behind[e], time}).first->second;
    link = {std::min(link.ahead, ahead[e]), std::min(link.behind, behind[e]),
            std::max(link.time, time)};
  }
  for (const auto& [number, link] : links) {
    least_of_all = std::max(least_of_all, link.ahead + link.time + link.behind);
  }
  constexpr double kTowardsMost = 0.4;  // minimizes the error over a grid of 512 trees on leaves
  return least_of_all + kTowardsMost * (most - least_of_all);
}

}  // namespace gradsync
