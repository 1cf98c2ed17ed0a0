#pragma once

#include <functional>
#include <vector>

#include "gradsync/simulator/plan/plan.hpp"

namespace gradsync {

/// Latency of the wires from one rank to another.
using WireLatency = std::function<Seconds(int from, int to)>;

/// The ranks' places: rank r is GPU r % per_node of node r / per_node.
struct Layout {
  int ranks = 1;
  int per_node = 1;
  bool cube_mesh = false;  ///< a node's members are listed along its NVLinks
  /// Of a node of two sockets, between which switches of so many GPUs are dealt: members are listed
  /// socket by socket. 0: no such node.
  int gpus_per_switch = 0;
  int nodes() const noexcept { return (ranks + per_node - 1) / per_node; }
  bool same_node(int a, int b) const noexcept { return a / per_node == b / per_node; }
  /// Ranks of a node, from its `rotation`-th GPU on and round; in a cube mesh along its NVLinks,
  /// half of the rotations in each direction, with the first and the last near one adapter.
  std::vector<int> members(int node, int rotation) const;
};

/// What a hop costs, and what it has in common with others.
struct Hops {
  Layout layout;
  WireLatency wire;
  Seconds inside{0};          ///< of the protocol, inside a node
  Seconds between{0};         ///< of the protocol, between nodes
  double weight_inside = 1;   ///< bytes on the wire for each that is sent, inside a node
  double weight_between = 1;  ///< and between nodes
  Seconds latency(int from, int to) const {
    return (layout.same_node(from, to) ? inside : between) + wire(from, to);
  }
  PlanEdge edge(int from, int to, double share, std::vector<int> after = {}) const;
};

/// One ring through all ranks in each of `orders`; each edge sends `steps` messages, which together
/// are `share` of the bytes, divided over the rings.
PlanPhase ring_phase(const Hops& hops, const std::vector<std::vector<int>>& orders, int steps,
                     double share);
/// From the first of each order to the last, chunk by chunk.
PlanPhase chain_phase(const Hops& hops, const std::vector<std::vector<int>>& orders, double share);
/// Towards the first of each order, chunk by chunk.
PlanPhase reduce_chain_phase(const Hops& hops, const std::vector<std::vector<int>>& orders,
                             double share);
/// NCCL's double binary tree over nodes, up and down, each node a chain; one pair of trees for each
/// of `rotations`.
PlanPhase double_tree_phase(const Hops& hops, int rotations);
/// The same trees over nodes in which the switch adds and spreads (NVLS); each GPU is the head of a
/// pair of them. The library's pace is that of the switch's part: hops between nodes are not paced.
PlanPhase nvls_tree_phase(const Hops& hops);
/// NVLS in one node: the switch adds up what all GPUs send, and spreads the sum. Each cable carries
/// (n+1)/n of the bytes each way.
PlanPhase nvls_phase(const Hops& hops);
/// Reduce-scatter and all-gather in groups of the given sizes (their product is the number of
/// `members`), a phase for each.
std::vector<PlanPhase> bcube_phases(const Hops& hops, const std::vector<int>& members,
                                    const std::vector<int>& groups);
/// Every rank sends its share of the bytes to the root.
PlanPhase gather_phase(const Hops& hops, int root, double share);
/// Gloo's broadcast, a binomial tree from `root`, and its barrier, dissemination.
std::vector<PlanPhase> binomial_phases(const Hops& hops, int root);
std::vector<PlanPhase> dissemination_phases(const Hops& hops);

/// Parent of a node in the two trees of NCCL's double binary tree (src/graph/trees.cc): a leaf of
/// one is inside the other. -1: the root.
int tree_parent(int node, int nodes, int tree);
/// Hops from the root to the node that is furthest from it.
int tree_depth(int nodes);
/// Times that the bytes of a message leave the busiest node, both trees together.
double tree_load(int nodes);

}  // namespace gradsync
