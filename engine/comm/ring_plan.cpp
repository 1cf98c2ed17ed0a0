#include "gradsync/comm/ring_plan.hpp"

#include <algorithm>
#include <cstring>

namespace gradsync {
namespace {

constexpr Bytes kMaxSegmentBytes = 1024 * 1024;  // gloo/allreduce.h

std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}
std::int64_t round_up(std::int64_t a, std::int64_t b) {
  return ceil_div(a, b) * b;
}

}  // namespace

RingPlan::RingPlan(Bytes total, std::size_t element_size, int rank_count)
    : bytes(total), ranks(rank_count) {
  const auto element = static_cast<Bytes>(element_size);
  const Bytes max_segment = element * std::max<Bytes>(1, kMaxSegmentBytes / element);
  const std::int64_t count = round_up(std::max(ceil_div(bytes, max_segment), 2 * ranks), ranks);
  segments_per_rank = count / ranks;
  segment_bytes = round_up(ceil_div(bytes, count), element);
}

Bytes RingPlan::offset(std::int64_t segment) const noexcept {
  return std::min(segment * segment_bytes, bytes);
}

Bytes RingPlan::length(std::int64_t segment) const noexcept {
  return offset(segment + 1) - offset(segment);
}

Bytes RingPlan::chunk_bytes() const noexcept {
  return std::min(bytes, segments_per_rank * segment_bytes);
}

void reduce_in_ring_order(const RingPlan& plan, const std::vector<std::byte*>& data,
                          ReduceFunction reduce, std::size_t element_size) {
  const auto ranks = static_cast<std::size_t>(plan.ranks);
  std::vector<std::byte> sum;
  for (std::size_t chunk = 0; chunk < ranks; ++chunk) {
    const auto segment = static_cast<std::int64_t>(chunk) * plan.segments_per_rank;
    const auto begin = static_cast<std::size_t>(plan.offset(segment));
    const auto end = static_cast<std::size_t>(plan.offset(segment + plan.segments_per_rank));
    if (begin == end) continue;
    const std::size_t elements = (end - begin) / element_size;
    const std::byte* first = data[(chunk + ranks - 1) % ranks] + begin;
    sum.assign(first, first + (end - begin));
    for (std::size_t hop = 2; hop <= ranks; ++hop) {
      const std::byte* local = data[(chunk + ranks - hop) % ranks] + begin;
      reduce(sum.data(), local, sum.data(), elements);
    }
    for (std::byte* rank : data) std::memcpy(rank + begin, sum.data(), end - begin);
  }
}

}  // namespace gradsync
