#pragma once

#include <cstdint>

namespace gradsync {

/// One step of SplitMix64 (Steele, Lea & Flood 2014): a bijection of 64-bit words that mixes every
/// bit of `x` into every bit of the result.
constexpr std::uint64_t splitmix64(std::uint64_t x) noexcept {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// s * 2^j: +-1, +-2, +-4 or +-8, chosen by three bits of a multiplicative hash. Sums of such
/// numbers are exact in any order.
constexpr double signed_power(std::uint32_t key, std::int64_t element) noexcept {
  const std::uint32_t mixed = (key + static_cast<std::uint32_t>(element)) * 2654435761u;
  const std::uint32_t bits = (mixed ^ (mixed >> 15)) * 2246822519u >> 29;
  const auto magnitude = static_cast<double>(1u << (bits & 3u));
  return (bits & 4u) != 0 ? -magnitude : magnitude;
}

/// e^x, within 2 ulp for |x| <= 700. Uses correctly rounded operations only, because the C
/// library's exp differs between machines. portable_exp(0) is 1.
double portable_exp(double x) noexcept;

/// Counter-based random numbers: number `index` of stream `stream` of a seed, in any order and on
/// any machine. Uses integer arithmetic and correctly rounded operations only (no C library
/// functions), so every processor and compiler gives the same bits.
class CounterRandom {
 public:
  CounterRandom(std::uint64_t seed, std::uint64_t stream) noexcept
      : key_(splitmix64(splitmix64(seed) + stream)) {}

  /// 64 random bits.
  std::uint64_t bits(std::uint64_t index) const noexcept {
    return splitmix64(key_ + index * 0x9e3779b97f4a7c15u);
  }
  /// Uniform in [0, 1), a multiple of 2^-53.
  double uniform(std::uint64_t index) const noexcept {
    return static_cast<double>(bits(index) >> 11) * 0x1p-53;
  }
  /// Uniform in [low, high).
  double uniform(std::uint64_t index, double low, double high) const noexcept {
    return low + (high - low) * uniform(index);
  }
  /// Normal with mean 0 and variance 1.
  double normal(std::uint64_t index) const noexcept;

 private:
  std::uint64_t key_;
};

}  // namespace gradsync
