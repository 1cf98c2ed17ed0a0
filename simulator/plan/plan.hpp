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
  double share = 0;    ///< fraction of the collective's bytes, over all its messages
  Seconds latency{0};  ///< of the wire and of the library's protocol
  /// Edges of the phase whose data this one forwards: its messages wait for theirs.
  std::vector<int> after = {};
  bool paced = true;  ///< Plan::limit holds on this edge
};

/// Edges that run concurrently. A rank enters a phase when everything the previous phase sends to
/// it has arrived.
struct PlanPhase {
  std::vector<PlanEdge> edges;
  /// Messages per edge; 0: the number of chunks of the data (Plan::chunk_bytes).
  int steps = 0;
  /// Message m of an edge waits for message m - lag of the edges in `after`: 1 in a ring, where a
  /// rank forwards what it received one step earlier, 0 in a tree.
  int lag = 0;
  /// Number of edges of one ring, which are consecutive; 0: not a ring. In a phase that is not a
  /// ring, an edge comes after the edges it waits for.
  int ring_size = 0;
  /// For a phase without edges: messages without bytes.
  Seconds latency{0};
  /// A ring in which each step waits for the neighbors (Gloo's credits, NCCL's kernels): every step
  /// pays the latency of the slowest hop.
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
  /// Upper limit of the data rate of the library's own kernels on an edge, whatever the links; 0:
  /// no limit.
  BytesPerSecond limit;
  double chunk_bytes = 0;  ///< of a pipeline, over all channels; the last is the rest; 0: one chunk

  /// An all-reduce sums in the order of Gloo's ring; otherwise in rank order.
  bool gloo_ring_sums = false;

  const std::vector<PlanPhase>& phases() const noexcept { return *shared_phases; }
  /// The number of messages per edge, and the share of the edge's bytes in message `number`, from
  /// 0.
  int messages(const PlanPhase& phase, Bytes bytes) const;
  double part(const PlanPhase& phase, Bytes bytes, int number) const;
  /// The minimum time in which an edge can send its bytes, given the library's limit.
  Seconds least(const PlanEdge& edge, Bytes bytes) const;
  /// The duration of a phase whose edges take `times`:
  /// - in step: bytes and latencies of the slowest edge;
  /// - a ring: a message travels hop by hop, each of which takes its latency and its part of the
  ///   edge's time; but at least what the busiest edge needs for all its messages;
  /// - otherwise, chunk by chunk: an edge starts when the first chunk has reached it, and the last
  ///   chunk still has to travel the rest of the way after it, each hop at its own rate. A link
  ///   shared by edges that are early and late in the pipeline is busy from the first to the last
  ///   of them, which is the lower bound of the phase. Each of them may finish as late as the last,
  ///   which is the upper bound. The estimate is between the two, closer to the lower bound;
  ///   without sharing they are equal.
  /// The first two use only `times.shared`.
  Seconds duration(const PlanPhase& phase, Bytes bytes, const EdgeTimes& times) const;

 private:
  double chunk(Bytes bytes) const;  ///< that is sent: chunk_bytes, or more where there are too many
  Seconds pipeline(const PlanPhase& phase, Bytes bytes, const EdgeTimes& times) const;
};

}  // namespace gradsync
