// The double binary tree of NCCL, over chains of GPUs or over NVLS switches.

#include <algorithm>
#include <numeric>

#include "gradsync/simulator/plan/phases.hpp"

namespace gradsync {
namespace {

/// Parent in the tree of bit patterns: the lowest set bit is cleared and the next one set.
int pattern_parent(int node, int nodes) {
  if (node == 0) return -1;
  const int bit = node & -node;
  const int up = (node ^ bit) | (bit << 1);
  return up >= nodes ? node ^ bit : up;
}

std::size_t at(int index) {
  return static_cast<std::size_t>(index);
}

/// Edges of one tree over all nodes, in which a node is its head alone.
class NodeTree {
 public:
  /// `into_head[node]`: edges that bring the head what its own node sends up.
  NodeTree(const Hops& hops, PlanPhase& phase, int tree, double share, std::vector<int> heads,
           std::vector<std::vector<int>> into_head)
      : hops_(hops),
        phase_(phase),
        tree_(tree),
        share_(share),
        nodes_(hops.layout.nodes()),
        heads_(std::move(heads)),
        up_into_(std::move(into_head)) {
    std::vector<int> depth(at(nodes_), 0);
    for (int node = 0; node < nodes_; ++node) {
      for (int up = parent(node); up >= 0; up = parent(up)) ++depth[at(node)];
    }
    order_.resize(at(nodes_));
    std::iota(order_.begin(), order_.end(), 0);
    std::stable_sort(order_.begin(), order_.end(),
                     [&](int a, int b) { return depth[at(a)] < depth[at(b)]; });
    add_up();
    add_down();
  }

  /// Nodes, parents before children.
  const std::vector<int>& order() const noexcept { return order_; }
  /// Edges that bring a node's head the result.
  const std::vector<int>& down_into(int node) const { return down_into_[at(node)]; }

 private:
  int parent(int node) const { return tree_parent(node, nodes_, tree_); }
  int add(int from, int to, const std::vector<int>& after) {
    phase_.edges.push_back(hops_.edge(heads_[at(from)], heads_[at(to)], share_, after));
    return static_cast<int>(phase_.edges.size()) - 1;
  }

  void add_up() {  // children first
    for (auto node = order_.rbegin(); node != order_.rend(); ++node) {
      if (parent(*node) < 0) continue;
      up_into_[at(parent(*node))].push_back(add(*node, parent(*node), up_into_[at(*node)]));
    }
  }

  void add_down() {
    down_into_.resize(at(nodes_));
    down_into_[at(order_.front())] = up_into_[at(order_.front())];
    for (const int node : order_) {
      if (parent(node) < 0) continue;
      down_into_[at(node)] = {add(parent(node), node, down_into_[at(parent(node))])};
    }
  }

  const Hops& hops_;
  PlanPhase& phase_;
  int tree_;
  double share_;
  int nodes_;
  std::vector<int> heads_;
  std::vector<std::vector<int>> up_into_;
  std::vector<std::vector<int>> down_into_;
  std::vector<int> order_;
};

/// Edges along the members, each after the one before it and the first after `after`; the last one.
std::vector<int> add_chain(const Hops& hops, PlanPhase& phase, const std::vector<int>& members,
                           double share, std::vector<int> after) {
  for (std::size_t i = 0; i + 1 < members.size(); ++i) {
    phase.edges.push_back(hops.edge(members[i], members[i + 1], share, after));
    after = {static_cast<int>(phase.edges.size()) - 1};
  }
  return after;
}

/// What the switch of each node does for the ranks of it: each rank's cable carries half of NVLS's
/// bytes on the way up, and half on the way down. By rank: the edge, or none.
std::vector<std::vector<int>> add_switches(const Hops& hops, PlanPhase& phase,
                                           const std::vector<std::vector<int>>& after) {
  std::vector<std::vector<int>> edges(at(hops.layout.ranks));
  for (int node = 0; node < hops.layout.nodes(); ++node) {
    const std::vector<int> members = hops.layout.members(node, 0);
    const auto n = static_cast<double>(members.size());
    for (std::size_t i = 0; n > 1 && i < members.size(); ++i) {
      const int rank = members[i];
      edges[at(rank)] = {static_cast<int>(phase.edges.size())};
      phase.edges.push_back(hops.edge(rank, members[(i + 1) % members.size()], (n + 1) / (2 * n),
                                      after.empty() ? std::vector<int>{} : after[at(rank)]));
    }
  }
  return edges;
}

}  // namespace

int tree_parent(int node, int nodes, int tree) {
  if (tree == 0) return pattern_parent(node, nodes);
  if (nodes % 2 == 0) {  // mirrored
    const int parent = pattern_parent(nodes - 1 - node, nodes);
    return parent < 0 ? -1 : nodes - 1 - parent;
  }
  const int parent = pattern_parent((node + nodes - 1) % nodes, nodes);  // shifted by one
  return parent < 0 ? -1 : (parent + 1) % nodes;
}

int tree_depth(int nodes) {
  int deepest = 0;
  for (int node = 0; node < nodes; ++node) {
    int depth = 0;
    for (int up = tree_parent(node, nodes, 0); up >= 0; up = tree_parent(up, nodes, 0)) ++depth;
    deepest = std::max(deepest, depth);
  }
  return deepest;
}

double tree_load(int nodes) {
  std::vector<double> leaves(at(nodes), 0);
  for (int tree = 0; tree < 2; ++tree) {
    for (int node = 0; node < nodes; ++node) {
      const int parent = tree_parent(node, nodes, tree);
      if (parent < 0) continue;
      leaves[at(node)] += 0.5;    // up
      leaves[at(parent)] += 0.5;  // down
    }
  }
  return *std::max_element(leaves.begin(), leaves.end());
}

PlanPhase double_tree_phase(const Hops& hops, int rotations) {
  const Layout& layout = hops.layout;
  const int nodes = layout.nodes();
  PlanPhase phase;
  const double share = 1.0 / (2 * rotations);
  for (int rotation = 0; rotation < rotations; ++rotation) {
    for (int tree = 0; tree < 2; ++tree) {
      std::vector<int> heads;
      std::vector<std::vector<int>> chains, into_head;
      for (int node = 0; node < nodes; ++node) {
        // The heads of the trees are spread over the node, so that each adapter has its share.
        chains.push_back(layout.members(node, rotation * layout.per_node / rotations));
        heads.push_back(chains.back()[0]);
        const std::vector<int> towards_head(chains.back().rbegin(), chains.back().rend());
        into_head.push_back(add_chain(hops, phase, towards_head, share, {}));
      }
      const NodeTree between(hops, phase, tree, share, std::move(heads), std::move(into_head));
      for (const int node : between.order()) {
        add_chain(hops, phase, chains[at(node)], share, between.down_into(node));
      }
    }
  }
  return phase;
}

PlanPhase nvls_tree_phase(const Hops& hops) {
  const Layout& layout = hops.layout;
  const int nodes = layout.nodes();
  PlanPhase phase;
  const std::vector<std::vector<int>> up = add_switches(hops, phase, {});
  std::vector<std::vector<int>> results(at(layout.ranks));  // by rank: what brings it the result
  const double share = 1.0 / (2 * layout.per_node);
  for (int head = 0; head < layout.per_node; ++head) {
    for (int tree = 0; tree < 2; ++tree) {
      std::vector<int> heads;
      std::vector<std::vector<int>> into_head;
      for (int node = 0; node < nodes; ++node) {
        heads.push_back(layout.members(node, head)[0]);
        into_head.push_back(up[at(heads.back())]);
      }
      const std::size_t first = phase.edges.size();
      const NodeTree between(hops, phase, tree, share, heads, std::move(into_head));
      for (std::size_t e = first; e < phase.edges.size(); ++e) phase.edges[e].paced = false;
      for (int node = 0; node < nodes; ++node) {
        for (const int edge : between.down_into(node)) {
          results[at(heads[at(node)])].push_back(edge);
        }
      }
    }
  }
  add_switches(hops, phase, results);
  return phase;
}

}  // namespace gradsync
