#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "gradsync/comm/process_group.hpp"

namespace gradsync::test {

/// What one rank of a test does with its process group. It runs on the rank's thread (or actor), so
/// it makes no assertions of Catch's: it fills results that the test looks at afterwards.
using RankFunction = std::function<void(ProcessGroup&)>;

/// A world under test: runs the function on each of `size` ranks, every one with its own group of a
/// new world, then shuts the group down; returns when all ranks have ended. If ranks threw, it
/// rethrows the exception of the lowest such rank.
using World = std::function<void(int size, const RankFunction&)>;

/// The contract of engine/comm/process_group.hpp, as assertions of Catch's: every operation, dtype
/// and reduction against a reference, bit for bit; ordering; records. One call per backend.
void check_process_group_conformance(const World& world);

/// Ranks that issue different collectives get kDesync, with both of them in the text; nobody gets a
/// wrong result and no process aborts.
void check_mismatches_are_desyncs(const World& world);

/// Elements of `rank` whose sum depends on the order in which it is taken: magnitudes from 2^-7 to
/// 2^7, both signs; integers below 50. The same on every call.
std::vector<std::byte> test_values(DType dtype, std::int64_t elements, int rank);

/// How Gloo's ring cuts `total_bytes` among `ranks` (gloo/allreduce.cc). Written on its own, not
/// from the code that it checks, and held against recorded values.
struct RingSegments {
  std::size_t count = 0;
  std::size_t per_rank = 0;
  std::size_t bytes = 0;  ///< of each but the last ones, which may be short or empty
};
RingSegments reference_ring_segments(std::size_t total_bytes, std::size_t element_bytes,
                                     std::size_t ranks);

/// The reference: what an all-reduce of `inputs` (one buffer a rank) gives on that ring, in its
/// order.
std::vector<std::byte> reference_ring_allreduce(const std::vector<std::vector<std::byte>>& inputs,
                                                DType dtype, ReduceOp op);

}  // namespace gradsync::test
