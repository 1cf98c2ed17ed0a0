#pragma once

#include <cstdint>
#include <random>
#include <vector>

namespace gradsync {

/// PyTorch's CPU generator: MT19937 seeded with the low 32 bits of a 64-bit seed (so seeds that
/// differ by 2^32 give the same stream). Use it where draws must equal PyTorch's; otherwise prefer
/// CounterRandom.
class Generator {
 public:
  explicit Generator(std::uint64_t seed) : engine_(static_cast<std::uint32_t>(seed)) {}

  std::uint32_t random32() { return static_cast<std::uint32_t>(engine_()); }
  /// Combines two 32-bit draws; the first is the high half.
  std::uint64_t random64() {
    const std::uint64_t high = random32();
    return (high << 32) | random32();
  }

  /// torch.randn(n) in float32. Values agree to about 1e-6 but not bit for bit, because PyTorch's
  /// vectorized log, sine and cosine differ from the C library's.
  std::vector<float> randn(std::size_t n);

 private:
  std::mt19937 engine_;
};

}  // namespace gradsync
