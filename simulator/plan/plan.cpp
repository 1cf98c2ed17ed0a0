#include "gradsync/simulator/plan/plan.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <unordered_map>

#include "gradsync/simulator/platform/cube_mesh.hpp"

namespace gradsync {
namespace {

constexpr int kMostChunks = 256;
constexpr int kFewChunks = 8;
constexpr double kShortestChunkShare = 1.0 / 16;  // of the usual chunk size

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

/// Parent in the tree of bit patterns: clear the lowest set bit and set the next one.
int pattern_parent(int node, int nodes) {
  if (node == 0) return -1;
  const int bit = node & -node;
  const int up = (node ^ bit) | (bit << 1);
  return up >= nodes ? node ^ bit : up;
}

}  // namespace

int Plan::chunks(Bytes bytes) const {
  if (chunk_bytes <= 0) return 1;
  const double full = static_cast<double>(bytes) / static_cast<double>(chunk_bytes);
  const double small = std::min<double>(kFewChunks, std::ceil(full / kShortestChunkShare));
  return static_cast<int>(std::clamp<double>(std::max(std::ceil(full), small), 1, kMostChunks));
}

Seconds Plan::least(Bytes bytes) const {
  return Seconds(limit.value > 0 ? static_cast<double>(bytes) / limit.value : 0.0);
}

Seconds Plan::duration(const PlanPhase& phase, Bytes bytes, const EdgeTimes& times) const {
  const std::vector<PlanEdge>& edges = phase.edges;
  const double floor = least(bytes).count();
  const auto time = [&](std::size_t edge) { return Seconds(std::max(times.shared[edge], floor)); };
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
  const Seconds floor = least(bytes);
  const double parts = messages(phase, bytes);
  // The pipeline fills and drains through links that few edges use.
  const auto chunk = [&](std::size_t e) {
    return std::max(Seconds(times.alone[e]), floor) / parts;
  };
  std::vector<Seconds> ahead(edges.size());   // until the edge's first chunk arrives
  std::vector<Seconds> behind(edges.size());  // from its last chunk's departure to the end
  for (std::size_t e = 0; e < edges.size(); ++e) {
    for (const int before : edges[e].after) {
      const auto b = static_cast<std::size_t>(before);
      ahead[e] = std::max(ahead[e], ahead[b] + chunk(b) + edges[b].latency);
    }
  }
  for (std::size_t e = edges.size(); e-- > 0;) {
    behind[e] += edges[e].latency;
    for (const int before : edges[e].after) {
      const auto b = static_cast<std::size_t>(before);
      behind[b] = std::max(behind[b], chunk(e) + behind[e]);
    }
  }
  struct Shared {
    Seconds ahead, behind, time;
  };
  std::unordered_map<std::size_t, Shared> links;
  Seconds most = phase.latency, least_of_all = phase.latency;
  for (std::size_t e = 0; e < edges.size(); ++e) {
    const Seconds time = std::max(Seconds(times.shared[e]), floor);
    most = std::max(most, ahead[e] + time + behind[e]);
    least_of_all =
        std::max(least_of_all, ahead[e] + std::max(Seconds(times.alone[e]), floor) + behind[e]);
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

std::vector<int> Layout::members(int node, int rotation) const {
  const int first = node * per_node;
  const int size = std::min(per_node, ranks - first);
  std::vector<int> result;
  for (int i = 0; i < size; ++i) {
    const int place = (rotation + i) % size;
    const bool along_links = cube_mesh && size == gradsync::cube_mesh::kGpus;
    result.push_back(first + (along_links
                                  ? gradsync::cube_mesh::rings()[0][static_cast<std::size_t>(place)]
                                  : place));
  }
  return result;
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
      phase.edges.push_back({from,
                             to,
                             share / static_cast<double>(orders.size()),
                             hops.latency(from, to),
                             {first + (i + n - 1) % n}});
    }
  }
  return phase;
}

PlanPhase chain_phase(const Hops& hops, const std::vector<std::vector<int>>& orders, double share) {
  PlanPhase phase;
  for (const std::vector<int>& order : orders) {
    for (std::size_t i = 0; i + 1 < order.size(); ++i) {
      PlanEdge edge{order[i], order[i + 1], share / static_cast<double>(orders.size()),
                    hops.latency(order[i], order[i + 1])};
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

int tree_parent(int node, int nodes, int tree) {
  if (tree == 0) return pattern_parent(node, nodes);
  if (nodes % 2 == 0) {  // mirrored
    const int parent = pattern_parent(nodes - 1 - node, nodes);
    return parent < 0 ? -1 : nodes - 1 - parent;
  }
  const int parent = pattern_parent((node + nodes - 1) % nodes, nodes);  // shifted by one
  return parent < 0 ? -1 : (parent + 1) % nodes;
}

PlanPhase double_tree_phase(const Hops& hops, int rotations, bool nvls) {
  const Layout& layout = hops.layout;
  const int nodes = layout.nodes();
  PlanPhase phase;
  // Inside a node of n head GPUs, NVLS moves (n+1)/n of the bytes in each direction.
  if (nvls) {
    for (int node = 0; node < nodes; ++node) {
      const std::vector<int> members = layout.members(node, 0);
      const auto n = static_cast<double>(members.size());
      for (std::size_t i = 0; n > 1 && i < members.size(); ++i) {
        const int next = members[(i + 1) % members.size()];
        phase.edges.push_back({members[i], next, (n + 1) / n, hops.wire(members[i], next), {}});
      }
    }
  }
  const double share = 1.0 / (2 * rotations);
  for (int rotation = 0; rotation < rotations; ++rotation) {
    for (int tree = 0; tree < 2; ++tree) {
      // Index of the edges up from (or down to) each node's head, and of those that arrive at a
      // head.
      const auto count = static_cast<std::size_t>(nodes);
      std::vector<std::vector<int>> up_into(count);
      std::vector<int> up_edge(count, -1);
      std::vector<int> heads(count);
      std::vector<std::vector<int>> chains(count);
      for (int node = 0; node < nodes; ++node) {
        const auto at = static_cast<std::size_t>(node);
        // The heads of the trees are spread over the node, so that each adapter gets its share.
        chains[at] = layout.members(node, rotation * layout.per_node / rotations);
        heads[at] = chains[at][0];
        if (nvls) continue;
        for (std::size_t i = chains[at].size() - 1; i > 0; --i) {  // towards the head
          PlanEdge edge{chains[at][i], chains[at][i - 1], share,
                        hops.latency(chains[at][i], chains[at][i - 1])};
          if (i + 1 < chains[at].size()) {
            edge.after.push_back(static_cast<int>(phase.edges.size()) - 1);
          }
          phase.edges.push_back(std::move(edge));
        }
        if (chains[at].size() > 1) {
          up_into[at].push_back(static_cast<int>(phase.edges.size()) - 1);
        }
      }
      std::vector<int> depth(count, 0);
      std::vector<int> order;  // parents before children
      const auto parent_of = [&](int node) { return tree_parent(node, nodes, tree); };
      for (int node = 0; node < nodes; ++node) {
        for (int up = parent_of(node); up >= 0; up = parent_of(up)) {
          ++depth[static_cast<std::size_t>(node)];
        }
        order.push_back(node);
      }
      std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
        return depth[static_cast<std::size_t>(a)] < depth[static_cast<std::size_t>(b)];
      });
      int root = order.front();
      for (auto node = order.rbegin(); node != order.rend(); ++node) {  // up: children first
        const int parent = parent_of(*node);
        if (parent < 0) continue;
        const auto at = static_cast<std::size_t>(*node);
        const int to = heads[static_cast<std::size_t>(parent)];
        up_edge[at] = static_cast<int>(phase.edges.size());
        phase.edges.push_back({heads[at], to, share, hops.latency(heads[at], to), up_into[at]});
        up_into[static_cast<std::size_t>(parent)].push_back(up_edge[at]);
      }
      std::vector<std::vector<int>> down_into(count);
      down_into[static_cast<std::size_t>(root)] = up_into[static_cast<std::size_t>(root)];
      for (const int node : order) {
        const auto at = static_cast<std::size_t>(node);
        const int parent = parent_of(node);
        if (parent >= 0) {
          const int from = heads[static_cast<std::size_t>(parent)];
          down_into[at] = {static_cast<int>(phase.edges.size())};
          phase.edges.push_back({from, heads[at], share, hops.latency(from, heads[at]),
                                 down_into[static_cast<std::size_t>(parent)]});
        }
        if (nvls) continue;
        for (std::size_t i = 0; i + 1 < chains[at].size(); ++i) {
          PlanEdge edge{chains[at][i], chains[at][i + 1], share,
                        hops.latency(chains[at][i], chains[at][i + 1])};
          edge.after =
              i == 0 ? down_into[at] : std::vector<int>{static_cast<int>(phase.edges.size()) - 1};
          phase.edges.push_back(std::move(edge));
        }
      }
    }
  }
  return phase;
}

PlanPhase nvls_phase(const Hops& hops) {
  PlanPhase phase;
  const int n = hops.layout.ranks;
  for (int rank = 0; rank < n; ++rank) {
    const int next = (rank + 1) % n;
    phase.edges.push_back({rank, next, (n + 1.0) / n, hops.latency(rank, next), {}});
  }
  return phase;
}

std::vector<PlanPhase> bcube_phases(const Hops& hops, const std::vector<int>& members,
                                    const std::vector<int>& groups) {
  std::vector<PlanPhase> scatter;
  double block = 1;  // fraction that a rank still has to reduce
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
        phase.edges.push_back({from, to, block / group, hops.latency(from, to)});
      }
    }
    scatter.push_back(std::move(phase));
    block /= group;
    distance *= group;
  }
  std::vector<PlanPhase> phases = scatter;  // the all-gather mirrors the reduce-scatter
  phases.insert(phases.end(), scatter.rbegin(), scatter.rend());
  return phases;
}

std::vector<PlanPhase> binomial_phases(const Hops& hops, int root) {
  const int n = hops.layout.ranks;
  const auto rank_at = [&](int position) { return (position + root) % n; };
  std::vector<PlanPhase> phases;
  // A rank at depth d has d bits set in its position; its children set one more, above the highest.
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
      phase.edges.push_back({from, to, 1, hops.latency(from, to)});
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
