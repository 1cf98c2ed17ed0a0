#pragma once

#include <cstdint>
#include <vector>

#include "gradsync/core/random.hpp"

namespace gradsync::test {

/// u(rank, iteration, tensor, element) of tests/data/pytorch/record_more.py: a multiple of 2^-23 in
/// [-1, 1).
inline float given_value(int rank, int iteration, int tensor, std::int64_t element) {
  const auto key =
      (static_cast<std::uint64_t>(rank) * 1024 + static_cast<std::uint64_t>(iteration)) * 1024 +
      static_cast<std::uint64_t>(tensor);
  const std::uint64_t bits = splitmix64((key << 32) + static_cast<std::uint64_t>(element));
  return static_cast<float>(bits >> 40) * 0x1p-23f - 1;
}

inline std::vector<float> given_values(int rank, int iteration, int tensor, std::size_t count) {
  std::vector<float> values;
  for (std::size_t i = 0; i < count; ++i) {
    values.push_back(given_value(rank, iteration, tensor, static_cast<std::int64_t>(i)));
  }
  return values;
}

}  // namespace gradsync::test
