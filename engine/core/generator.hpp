#pragma once

#include <cstdint>
#include <random>
#include <vector>

namespace gradsync {

/// PyTorch's CPU generator: MT19937 seeded with the low 32 bits of a 64-bit seed (so seeds that
/// differ by 2^32 give the same stream). Where a draw must equal one of PyTorch's; elsewhere
/// CounterRandom is the better choice.
class Generator {
 public:
  explicit Generator(std::uint64_t seed) : engine_(static_cast<std::uint32_t>(seed)) {}

  std::uint32_t random32() { return static_cast<std::uint32_t>(engine_()); }
  /// The first of two draws is the high half.
  std::uint64_t random64() {
    const std::uint64_t high = random32();
    return (high << 32) | random32();
  }

  /// torch.randn(n) in float32. PyTorch's vectorized log, sine and cosine differ from the C
  /// library's, so values agree to about 1e-6, not to the bit.
  std::vector<float> randn(std::size_t n);

 private:
  std::mt19937 engine_;
};

}  // namespace gradsync
