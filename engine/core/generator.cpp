#include "gradsync/core/generator.hpp"

#include <cmath>
#include <numbers>

namespace gradsync {
namespace {

constexpr std::size_t kBlock = 16;

/// Box-Muller on a block of 16 uniform numbers: the first half are radii, the second angles.
void make_normal(float* block) {
  for (std::size_t i = 0; i < kBlock / 2; ++i) {
    const float radius = std::sqrt(-2.0f * std::log(1.0f - block[i]));
    const float angle = 2.0f * std::numbers::pi_v<float> * block[i + kBlock / 2];
    block[i] = radius * std::cos(angle);
    block[i + kBlock / 2] = radius * std::sin(angle);
  }
}

}  // namespace

std::vector<float> Generator::randn(std::size_t n) {
  std::vector<float> values(n);
  if (n < kBlock) {
    // Two at a time, in double precision.
    const auto uniform = [&] {
      return static_cast<double>(random64() & ((std::uint64_t{1} << 53) - 1)) * 0x1p-53;
    };
    for (std::size_t i = 0; i < n; i += 2) {
      const double angle = 2 * std::numbers::pi * uniform();
      const double radius = std::sqrt(-2 * std::log1p(-uniform()));
      values[i] = static_cast<float>(radius * std::cos(angle));
      if (i + 1 < n) values[i + 1] = static_cast<float>(radius * std::sin(angle));
    }
    return values;
  }
  const auto uniform = [&] { return static_cast<float>(random32() & 0xffffffu) * 0x1p-24f; };
  for (float& value : values) value = uniform();
  for (std::size_t i = 0; i + kBlock <= n; i += kBlock) make_normal(&values[i]);
  if (n % kBlock != 0) {
    // The last block overlaps the previous one and draws new numbers.
    float* block = &values[n - kBlock];
    for (std::size_t i = 0; i < kBlock; ++i) block[i] = uniform();
    make_normal(block);
  }
  return values;
}

}  // namespace gradsync
