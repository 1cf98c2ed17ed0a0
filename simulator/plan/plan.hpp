#pragma once

#include <cstdint>
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
  bool paced = true;  ///< Plan::limit holds on this edge
};

/// Edges that work side by side. A rank enters a phase when all that the phase before brings it has
/// arrived.
struct PlanPhase {
  std::vector<PlanEdge> edges;
  /// Messages of each edge; 0: as many as the bytes have chunks (Plan::chunk_bytes).
  int steps = 0;
  /// Message m of an edge waits for message m - lag of those in `after`: 1 in a ring, where a rank
  /// passes on what it received a step ago, 0 in a tree.
  int lag = 0;
  /// Edges of one ring, which stand one after the other; 0: no ring. In a phase that is none, what
  /// an edge waits for stands before it.
  int ring_size = 0;
  /// Of a phase without edges: messages without bytes.
  Seconds latency{0};
  /// A ring in which a step waits for its neighbours' (Gloo's credits, NCCL's kernels): the slowest
  /// hop pays its latency in every step.
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
  /// Data a second above which the library's own kernels do not get on an edge, whatever the wires
  /// give; 0: no such limit.
  BytesPerSecond limit;
  double chunk_bytes = 0;  ///< of a pipeline, over all channels: the last is what is left; 0: one

  /// An all-reduce's sum is taken in the order of Gloo's ring; else in the order of the ranks.
  bool gloo_ring_sums = false;

  const std::vector<PlanPhase>& phases() const noexcept { return *shared_phases; }
  /// Messages of an edge, and what part of the edge's bytes message `number` (from 0) has.
  int messages(const PlanPhase& phase, Bytes bytes) const;
  double part(const PlanPhase& phase, Bytes bytes, int number) const;
  /// The least time in which an edge can send its bytes, whatever the wires give.
  Seconds least(const PlanEdge& edge, Bytes bytes) const;
  /// What a phase takes whose edges have `times`:
  /// - in step: the slowest edge's bytes and latencies;
  /// - a ring: a message goes round hop by hop, each of which takes its latency and its part of the
  ///   edge's time; but no less than the busiest edge needs for all its messages;
  /// - otherwise, chunk by chunk: an edge sends its chunks after the first has come to it, and the
  ///   last has a way to go after it, hop by hop at each hop's own rate. Where a link is shared by
  ///   edges that come early and late in the pipeline, it works from the first of them to the last,
  ///   which is the least that a phase takes, and each of them may come to its end as late as the
  ///   last, which is the most. What it takes is between, nearer to the least; the two are one
  ///   where nothing is shared.
  /// The first two read `times.shared` alone.
  Seconds duration(const PlanPhase& phase, Bytes bytes, const EdgeTimes& times) const;

 private:
  double chunk(Bytes bytes) const;  ///< that is sent: chunk_bytes, or more where there are too many
  Seconds pipeline(const PlanPhase& phase, Bytes bytes, const EdgeTimes& times) const;
};

}  // namespace gradsync
