#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gradsync/comm/reduce_functions.hpp"
#include "gradsync/core/units.hpp"

namespace gradsync {

/// Message schedule of Gloo's ring all-reduce (gloo/allreduce.cc, default options) of `bytes` bytes
/// over `ranks` ranks.
///
/// The data is split into `segments()` segments of `segment_bytes` (the last ones may be short or
/// empty). The number of segments is a multiple of the number of ranks, at least two per rank, and
/// a segment has at most 1 MiB. `segments_per_rank` consecutive segments form a chunk. Each rank
/// sends messages 0, 1, 2, ... to rank - 1: message m of rank r carries segment ((r + 1) *
/// segments_per_rank + m) mod segments, which is the segment that r received in message m -
/// segments_per_rank. In the first half of the messages the receiver adds the incoming data to its
/// own (reduce-scatter); in the second half it overwrites its own (all-gather).
struct RingPlan {
  RingPlan(Bytes bytes, std::size_t element_size, int ranks);

  std::int64_t segments() const noexcept { return ranks * segments_per_rank; }
  /// Messages sent, and received, by each rank; includes empty segments.
  std::int64_t messages() const noexcept { return 2 * segments_per_rank * (ranks - 1); }
  std::int64_t segment_of_message(int sender, std::int64_t message) const noexcept {
    return ((sender + 1) * segments_per_rank + message) % segments();
  }
  bool is_reduced(std::int64_t message) const noexcept { return message < messages() / 2; }
  Bytes offset(std::int64_t segment) const noexcept;
  Bytes length(std::int64_t segment) const noexcept;
  /// Size of the longest chunk.
  Bytes chunk_bytes() const noexcept;

  Bytes bytes;
  std::int64_t ranks;
  std::int64_t segments_per_rank;
  Bytes segment_bytes;
};

/// The result of the ring, computed without messages: every rank's data becomes the reduction over
/// all ranks. Chunk c is reduced in the order x[c] + (x[c+1] + (... + (x[c-2] + x[c-1]))), with
/// ranks modulo the number of ranks, one rounding per step, local operand first.
void reduce_in_ring_order(const RingPlan& plan, const std::vector<std::byte*>& data,
                          ReduceFunction reduce, std::size_t element_size);

}  // namespace gradsync
