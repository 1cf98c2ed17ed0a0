#pragma once

#include <cstdint>

namespace gradsync {

/// A random 64-bit number for each (seed, stream, counter), the same on every machine and computed
/// on its own: splitmix64 (Steele, Lea & Flood 2014) of seed + stream * 2^40 + counter.
constexpr std::uint64_t counter_hash(std::uint64_t seed, std::uint64_t stream,
                                     std::uint64_t counter) noexcept {
  std::uint64_t x = seed + (stream << 40) + counter + 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

}  // namespace gradsync
