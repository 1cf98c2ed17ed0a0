#pragma once

#include <algorithm>
#include <cstdint>

#include "gradsync/tensor/simd.hpp"

/// Sums of the CPU's kernels. Their order decides the last bit of a result, so it stands here once.
namespace gradsync::cpu {

inline constexpr std::int64_t kLanes = 8;

/// Sum of term(i) for i < count: eight running sums, added first to last, then the remaining terms.
template <typename T, typename Term>
GRADSYNC_KERNEL T lane_sum(std::int64_t count, const Term& term) {
  T lanes[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    GRADSYNC_LANE_LOOP
    for (std::int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] += term(i + lane);
  }
  T sum = lanes[0];
  for (std::int64_t lane = 1; lane < kLanes; ++lane) sum += lanes[lane];
  for (; i < count; ++i) sum += term(i);
  return sum;
}

/// Four rows at a time, added in order, which saves three quarters of the loads and stores of the
/// sums.
struct SumRows {
  template <typename T>
  GRADSYNC_KERNEL void operator()(T* __restrict out, const T* __restrict x, std::int64_t rows,
                                  std::int64_t columns) const {
    std::fill_n(out, columns, T{0});
    std::int64_t row = 0;
    for (; row + 4 <= rows; row += 4, x += 4 * columns) {
      for (std::int64_t i = 0; i < columns; ++i) {
        const T pair = (out[i] + x[i]) + x[i + columns];
        out[i] = (pair + x[i + 2 * columns]) + x[i + 3 * columns];
      }
    }
    for (; row < rows; ++row, x += columns) {
      for (std::int64_t i = 0; i < columns; ++i) out[i] += x[i];
    }
  }
};

}  // namespace gradsync::cpu
