#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gradsync/comm/reduce_functions.hpp"
#include "gradsync/core/units.hpp"

namespace gradsync {

/// How Gloo's ring all-reduce (gloo/allreduce.cc, default options) cuts `bytes` bytes for `ranks`
/// ranks, and which of the pieces travels when.
///
/// The bytes are cut into `segments()` segments of `segment_bytes` (the last ones may be short or
/// empty), a multiple of the ranks, at least two a rank, at most 1 MiB each; `segments_per_rank`
/// consecutive ones make a chunk. Each rank sends to rank - 1, in messages 0, 1, 2, ...: message m
/// of rank r carries segment ((r + 1) * segments_per_rank + m) mod segments. That is the very
/// segment that it received in message m - segments_per_rank. In the first half of the messages the
/// receiver adds what arrives to its own (reduce-scatter), in the second half it takes it over
/// (all-gather).
struct RingPlan {
  RingPlan(Bytes bytes, std::size_t element_size, int ranks);

  std::int64_t segments() const noexcept { return ranks * segments_per_rank; }
  /// That each rank sends, and receives; segments without bytes included.
  std::int64_t messages() const noexcept { return 2 * segments_per_rank * (ranks - 1); }
  std::int64_t segment_of_message(int sender, std::int64_t message) const noexcept {
    return ((sender + 1) * segments_per_rank + message) % segments();
  }
  bool is_reduced(std::int64_t message) const noexcept { return message < messages() / 2; }
  Bytes offset(std::int64_t segment) const noexcept;
  Bytes length(std::int64_t segment) const noexcept;
  /// Of the longest chunk.
  Bytes chunk_bytes() const noexcept;

  Bytes bytes;
  std::int64_t ranks;
  std::int64_t segments_per_rank;
  Bytes segment_bytes;
};

/// What the ring computes, without the messages: every rank's data becomes the reduction over all,
/// chunk c in the order x[c] + (x[c+1] + (... + (x[c-2] + x[c-1]))), ranks modulo the number of
/// ranks, one rounding a step, the local operand first.
void reduce_in_ring_order(const RingPlan& plan, const std::vector<std::byte*>& data,
                          ReduceFunction reduce, std::size_t element_size);

}  // namespace gradsync
