#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gradsync/core/units.hpp"

namespace gradsync {

/// Messages from one rank to another.
struct PlanEdge {
  int from = 0;
  int to = 0;
  double share = 0;    ///< of the collective's bytes that it carries, all messages together
  Seconds latency{0};  ///< of the wire and of the library's protocol
  /// Edges of the phase that bring what this one passes on: a message waits for theirs.
  std::vector<int> after = {};
};

/// Edges that work side by side. A rank enters a phase when all that the phase before brings it has
/// arrived.
struct PlanPhase {
  std::vector<PlanEdge> edges;
  /// Messages of each edge; 0: as many as the bytes have chunks (Plan::chunks).
  int steps = 0;
  /// Message m of an edge waits for message m - lag of those in `after`: 1 in a ring, where a rank
  /// passes on what it received a step ago, 0 in a tree.
  int lag = 0;
  /// Edges of one ring, which stand one after the other; 0: no ring. In a phase that is none, what
  /// an edge waits for stands before it.
  int ring_size = 0;
  /// Of a phase without edges: messages without bytes.
  Seconds latency{0};
  /// A ring in which a step waits for its neighbours' (Gloo's credits): the slowest hop pays its
  /// latency in every step.
  bool in_step = false;
};

/// What each edge of a phase has of the network: seconds for all of its bytes.
struct EdgeTimes {
  std::vector<double> shared;           ///< all edges send at once
  std::vector<double> alone;            ///< no other edge sends
  std::vector<std::size_t> bottleneck;  ///< the link that is behind `shared`, by its number
};

/// How a library does a collective: what each rank sends to whom, and what waits for what. It is
/// independent of the number of bytes, and the one description that all three fidelities read:
/// `message` sends every message, `flow` one flow for all messages between two ranks, `analytic`
/// divides the bytes on the busiest link by its bandwidth.
struct Plan {
  std::string name;  ///< "ring ll128, 24 channels"
  /// Shared by plans that differ in their numbers alone; never null in a plan that is used.
  std::shared_ptr<const std::vector<PlanPhase>> shared_phases;
  Seconds base{0};         ///< before the first message
  double wire_factor = 1;  ///< bytes on the wire for each byte of data
  /// Data a second above which the library does not get, whatever the wires give; 0: no such limit.
  BytesPerSecond limit;
  Bytes chunk_bytes = 0;  ///< of a pipeline, over all channels

  /// An all-reduce's sum is taken in the order of Gloo's ring; else in the order of the ranks.
  bool gloo_ring_sums = false;

  const std::vector<PlanPhase>& phases() const noexcept { return *shared_phases; }
  /// Messages of an edge of a phase with `steps` 0.
  int chunks(Bytes bytes) const;
  int messages(const PlanPhase& phase, Bytes bytes) const {
    return phase.steps > 0 ? phase.steps : chunks(bytes);
  }
  /// The least time in which an edge can send its bytes, whatever the wires give.
  Seconds least(Bytes bytes) const;
  /// What a phase takes whose edges have `times`:
  /// - in step: the slowest edge's bytes and latencies;
  /// - a ring: a message goes round hop by hop, each of which takes its latency and its part of the
  ///   edge's time; but no less than the busiest edge needs for all its messages;
  /// - otherwise, chunk by chunk: an edge sends its chunks after the first has come to it, and the
  ///   last has a way to go after it. Where a link is shared by edges that come early and late in
  ///   the pipeline, it works from the first of them to the last, which is the least that a phase
  ///   takes, and each of them may come to its end as late as the last, which is the most. What it
  ///   takes is between, nearer to the least; the two are one where nothing is shared.
  /// The first two read `times.shared` alone.
  Seconds duration(const PlanPhase& phase, Bytes bytes, const EdgeTimes& times) const;

 private:
  Seconds pipeline(const PlanPhase& phase, Bytes bytes, const EdgeTimes& times) const;
};

/// Latency of the wires from one rank to another.
using WireLatency = std::function<Seconds(int from, int to)>;

/// The ranks' places: rank r is GPU r % per_node of node r / per_node.
struct Layout {
  int ranks = 1;
  int per_node = 1;
  bool cube_mesh = false;  ///< a node's members are listed along its NVLinks
  int nodes() const noexcept { return (ranks + per_node - 1) / per_node; }
  bool same_node(int a, int b) const noexcept { return a / per_node == b / per_node; }
  /// Ranks of a node, from its `rotation`-th GPU on and round.
  std::vector<int> members(int node, int rotation) const;
};

/// What a hop costs, and what it has in common with others.
struct Hops {
  Layout layout;
  WireLatency wire;
  Seconds inside{0};   ///< of the protocol, inside a node
  Seconds between{0};  ///< of the protocol, between nodes
  Seconds protocol(int from, int to) const { return layout.same_node(from, to) ? inside : between; }
  Seconds latency(int from, int to) const { return protocol(from, to) + wire(from, to); }
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
/// of `rotations`. With `nvls` a node is no chain: its switch adds and spreads, and each GPU is the
/// head of a tree of its own.
PlanPhase double_tree_phase(const Hops& hops, int rotations, bool nvls);
/// NVLS in one node: the switch adds up what all GPUs send, and spreads the sum. Each cable carries
/// (n+1)/n of the bytes each way.
PlanPhase nvls_phase(const Hops& hops);
/// Reduce-scatter and all-gather in groups of the given sizes (their product is the number of
/// `members`), a phase for each.
std::vector<PlanPhase> bcube_phases(const Hops& hops, const std::vector<int>& members,
                                    const std::vector<int>& groups);
/// Gloo's broadcast, a binomial tree from `root`, and its barrier, dissemination.
std::vector<PlanPhase> binomial_phases(const Hops& hops, int root);
std::vector<PlanPhase> dissemination_phases(const Hops& hops);

/// Parent of a node in the two trees of NCCL's double binary tree (src/graph/trees.cc): a leaf of
/// one is inside the other. -1: the root.
int tree_parent(int node, int nodes, int tree);

}  // namespace gradsync
