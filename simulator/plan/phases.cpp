#include "gradsync/simulator/plan/phases.hpp"

#include <algorithm>
#include <bit>
#include <numeric>

#include "gradsync/simulator/platform/cube_mesh.hpp"

namespace gradsync {

std::vector<int> Layout::members(int node, int rotation) const {
  const int first = node * per_node;
  const int size = std::min(per_node, ranks - first);
  std::vector<int> result(static_cast<std::size_t>(size));
  std::iota(result.begin(), result.end(), first);
  int place = rotation;
  if (cube_mesh && size == gradsync::cube_mesh::kGpus) {
    const auto& ring = gradsync::cube_mesh::rings()[0];
    std::transform(ring.begin(), ring.end(), result.begin(), [&](int gpu) { return first + gpu; });
    const bool backward = rotation / 2 % 2 == 1;
    if (backward) std::reverse(result.begin(), result.end());
    place = backward ? size - 1 - rotation : rotation + 1;
  }
  std::rotate(result.begin(), result.begin() + place % size, result.end());
  if (gpus_per_switch > 0) {
    // A ring then passes from socket to socket once each way.
    const auto socket = [&](int rank) { return (rank - first) / gpus_per_switch % 2; };
    std::stable_partition(result.begin(), result.end(), [&, front = result[0]](int rank) {
      return socket(rank) == socket(front);
    });
  }
  return result;
}

PlanEdge Hops::edge(int from, int to, double share, std::vector<int> after) const {
  const double weight = layout.same_node(from, to) ? weight_inside : weight_between;
  return {from, to, share * weight, latency(from, to), std::move(after)};
}

PlanPhase ring_phase(const Hops& hops, const std::vector<std::vector<int>>& orders, int steps,
                     double share) {
  PlanPhase phase;
  phase.steps = steps;
  phase.lag = 1;
  for (const std::vector<int>& order : orders) {
    const auto n = static_cast<int>(order.size());
    const auto first = static_cast<int>(phase.edges.size());
    phase.ring_size = n;
    for (int i = 0; i < n; ++i) {
      const int from = order[static_cast<std::size_t>(i)];
      const int to = order[static_cast<std::size_t>((i + 1) % n)];
      phase.edges.push_back(hops.edge(from, to, share / static_cast<double>(orders.size()),
                                      {first + (i + n - 1) % n}));
    }
  }
  return phase;
}

PlanPhase chain_phase(const Hops& hops, const std::vector<std::vector<int>>& orders, double share) {
  PlanPhase phase;
  for (const std::vector<int>& order : orders) {
    for (std::size_t i = 0; i + 1 < order.size(); ++i) {
      PlanEdge edge = hops.edge(order[i], order[i + 1], share / static_cast<double>(orders.size()));
      if (i > 0) edge.after.push_back(static_cast<int>(phase.edges.size()) - 1);
      phase.edges.push_back(std::move(edge));
    }
  }
  return phase;
}

PlanPhase reduce_chain_phase(const Hops& hops, const std::vector<std::vector<int>>& orders,
                             double share) {
  std::vector<std::vector<int>> reversed = orders;
  for (std::vector<int>& order : reversed) std::reverse(order.begin(), order.end());
  return chain_phase(hops, reversed, share);
}

PlanPhase nvls_phase(const Hops& hops) {
  PlanPhase phase;
  const int n = hops.layout.ranks;
  for (int rank = 0; rank < n; ++rank) {
    const int next = (rank + 1) % n;
    phase.edges.push_back(hops.edge(rank, next, (n + 1.0) / n));
  }
  return phase;
}

std::vector<PlanPhase> bcube_phases(const Hops& hops, const std::vector<int>& members,
                                    const std::vector<int>& groups) {
  std::vector<PlanPhase> scatter;
  double block = 1;  // what a rank still has to reduce, of all bytes
  int distance = 1;
  const auto n = static_cast<int>(members.size());
  for (const int group : groups) {
    PlanPhase phase;
    phase.steps = 1;
    for (int i = 0; i < n; ++i) {
      const int place = (i / distance) % group;
      for (int peer = 0; peer < group; ++peer) {
        if (peer == place) continue;
        const int other = i + (peer - place) * distance;
        const int from = members[static_cast<std::size_t>(i)];
        const int to = members[static_cast<std::size_t>(other)];
        phase.edges.push_back(hops.edge(from, to, block / group));
      }
    }
    scatter.push_back(std::move(phase));
    block /= group;
    distance *= group;
  }
  std::vector<PlanPhase> phases = scatter;  // and back: the all-gather is its mirror image
  phases.insert(phases.end(), scatter.rbegin(), scatter.rend());
  return phases;
}

std::vector<PlanPhase> binomial_phases(const Hops& hops, int root) {
  const int n = hops.layout.ranks;
  const auto rank_at = [&](int position) { return (position + root) % n; };
  std::vector<PlanPhase> phases;
  // A rank at depth d has d bits set in its position; its children have one more, above its
  // highest.
  for (int position = 0; position < n; ++position) {
    const auto depth = static_cast<std::size_t>(std::popcount(static_cast<unsigned>(position)));
    const auto lowest = std::bit_floor(static_cast<unsigned>(position)) * 2;
    for (int distance = position == 0 ? 1 : static_cast<int>(lowest); position + distance < n;
         distance *= 2) {
      if (phases.size() <= depth) phases.resize(depth + 1);
      PlanPhase& phase = phases[depth];
      phase.steps = 1;
      const int from = rank_at(position);
      const int to = rank_at(position + distance);
      phase.edges.push_back(hops.edge(from, to, 1));
    }
  }
  return phases;
}

std::vector<PlanPhase> dissemination_phases(const Hops& hops) {
  const int n = hops.layout.ranks;
  std::vector<PlanPhase> phases;
  for (int distance = 1; distance < n; distance *= 2) {
    PlanPhase phase;
    phase.steps = 1;
    for (int rank = 0; rank < n; ++rank) {
      phase.latency = std::max(phase.latency, hops.latency(rank, (rank + distance) % n));
    }
    phases.push_back(std::move(phase));
  }
  return phases;
}

}  // namespace gradsync
