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
  double share = 0;    ///< fraction of the collective's bytes, over all its messages
  Seconds latency{0};  ///< of the wire and of the library's protocol
  /// Edges of the phase whose data this one forwards: its messages wait for theirs.
  std::vector<int> after = {};
};

/// Edges that run concurrently. A rank enters a phase when everything the previous phase sends to
/// it has arrived.
struct PlanPhase {
  std::vector<PlanEdge> edges;
  /// Messages per edge; 0: the number of chunks of the data (Plan::chunks).
  int steps = 0;
  /// Message m of an edge waits for message m - lag of the edges in `after`: 1 in a ring, where a
  /// rank forwards what it received one step earlier, 0 in a tree.
  int lag = 0;
  /// Number of edges of one ring, which are consecutive; 0: not a ring. In a phase that is not a
  /// ring, an edge comes after the edges it waits for.
  int ring_size = 0;
  /// For a phase without edges: messages without bytes.
  Seconds latency{0};
  /// A ring in which each step waits for the neighbors (Gloo's credits): every step pays the
  /// latency of the slowest hop.
  bool in_step = false;
};

/// The network time of each edge of a phase: seconds for all of its bytes.
struct EdgeTimes {
  std::vector<double> shared;           ///< if all edges send concurrently
  std::vector<double> alone;            ///< if no other edge sends
  std::vector<std::size_t> bottleneck;  ///< number of the link that determines `shared`
};

/// How a library runs a collective: what each rank sends to whom, and the dependencies. Independent
/// of the number of bytes. All three fidelities use this description: `message` simulates every
/// message, `flow` one flow for all messages between two ranks, and `analytic` divides the bytes on
/// the busiest link by its bandwidth.
struct Plan {
  std::string name;  ///< "ring ll128, 24 channels"
  /// Shared by plans that differ only in their numbers; never null in a plan that is used.
  std::shared_ptr<const std::vector<PlanPhase>> shared_phases;
  Seconds base{0};         ///< before the first message
  double wire_factor = 1;  ///< bytes on the wire per byte of data
  /// Upper limit of the library's data rate, whatever the network; 0: no limit.
  BytesPerSecond limit;
  Bytes chunk_bytes = 0;  ///< of a pipeline, over all channels

  /// An all-reduce sums in the order of Gloo's ring; otherwise in rank order.
  bool gloo_ring_sums = false;

  const std::vector<PlanPhase>& phases() const noexcept { return *shared_phases; }
  /// Number of messages per edge of a phase with `steps` 0.
  int chunks(Bytes bytes) const;
  int messages(const PlanPhase& phase, Bytes bytes) const {
    return phase.steps > 0 ? phase.steps : chunks(bytes);
  }
  /// The minimum time in which an edge can send its bytes, given the library's limit.
  Seconds least(Bytes bytes) const;
  /// The duration of a phase whose edges take `times`:
  /// - in step: bytes and latencies of the slowest edge;
  /// - a ring: a message travels hop by hop, each of which takes its latency and its part of the
  ///   edge's time; but at least what the busiest edge needs for all its messages;
  /// - otherwise, chunk by chunk: an edge starts when the first chunk has reached it, and the last
  ///   chunk still has to travel the rest of the way after it. A link shared by edges that are
  ///   early
  ///   and late in the pipeline is busy from the first to the last of them, which is the lower
  ///   bound
  ///   of the phase. Each of them may finish as late as the last, which is the upper bound. The
  ///   estimate is between the two, closer to the lower bound; without sharing they are equal.
  /// The first two use only `times.shared`.
  Seconds duration(const PlanPhase& phase, Bytes bytes, const EdgeTimes& times) const;

 private:
  Seconds pipeline(const PlanPhase& phase, Bytes bytes, const EdgeTimes& times) const;
};

/// Wire latency from one rank to another.
using WireLatency = std::function<Seconds(int from, int to)>;

/// Placement: rank r is GPU r % per_node of node r / per_node.
struct Layout {
  int ranks = 1;
  int per_node = 1;
  bool cube_mesh = false;  ///< list the members of a node along its NVLinks
  int nodes() const noexcept { return (ranks + per_node - 1) / per_node; }
  bool same_node(int a, int b) const noexcept { return a / per_node == b / per_node; }
  /// Ranks of a node, starting at GPU `rotation` and wrapping around.
  std::vector<int> members(int node, int rotation) const;
};

/// The cost of a hop, and the fields shared with other hops.
struct Hops {
  Layout layout;
  WireLatency wire;
  Seconds inside{0};   ///< of the protocol, inside a node
  Seconds between{0};  ///< of the protocol, between nodes
  Seconds protocol(int from, int to) const { return layout.same_node(from, to) ? inside : between; }
  Seconds latency(int from, int to) const { return protocol(from, to) + wire(from, to); }
};

/// One ring over all ranks for each of `orders`. Each edge sends `steps` messages, which together
/// are `share` of the bytes, divided over the rings.
PlanPhase ring_phase(const Hops& hops, const std::vector<std::vector<int>>& orders, int steps,
                     double share);
/// From the first of each order to the last, chunk by chunk.
PlanPhase chain_phase(const Hops& hops, const std::vector<std::vector<int>>& orders, double share);
/// Towards the first of each order, chunk by chunk.
PlanPhase reduce_chain_phase(const Hops& hops, const std::vector<std::vector<int>>& orders,
                             double share);
/// NCCL's double binary tree over nodes, up and down, with a chain inside each node; one pair of
/// trees per rotation. With `nvls` there is no chain: the node's switch reduces and multicasts, and
/// each GPU is the head of its own tree.
PlanPhase double_tree_phase(const Hops& hops, int rotations, bool nvls);
/// NVLS in one node: the switch reduces what all GPUs send and multicasts the sum. Each cable
/// carries (n+1)/n of the bytes in each direction.
PlanPhase nvls_phase(const Hops& hops);
/// Reduce-scatter and all-gather in groups of the given sizes (their product is the number of
/// `members`), one phase each.
std::vector<PlanPhase> bcube_phases(const Hops& hops, const std::vector<int>& members,
                                    const std::vector<int>& groups);
/// Every rank sends its share of the bytes to the root.
PlanPhase gather_phase(const Hops& hops, int root, double share);
/// Gloo's broadcast, a binomial tree from `root`, and its barrier, by dissemination.
std::vector<PlanPhase> binomial_phases(const Hops& hops, int root);
std::vector<PlanPhase> dissemination_phases(const Hops& hops);

/// Parent of a node in one of the two trees of NCCL's double binary tree (src/graph/trees.cc): a
/// leaf of one tree is an inner node of the other. -1: the root.
int tree_parent(int node, int nodes, int tree);

}  // namespace gradsync
