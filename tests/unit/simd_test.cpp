#include "gradsync/tensor/simd.hpp"

#include <cmath>
#include <cstdint>
#include <vector>

#include "gradsync/core/random.hpp"
#include "tests/support/catch.hpp"

namespace {

/// Rounds in every way that the engine's kernels do: fused and separate products, division, root,
/// comparison, and sums by lanes.
struct Everything {
  GRADSYNC_KERNEL void operator()(float* out, const float* x, std::size_t count) const {
    float lanes[8] = {};
    for (std::size_t i = 0; i + 8 <= count; i += 8) {
      GRADSYNC_LANE_LOOP
      for (std::size_t lane = 0; lane < 8; ++lane) {
        const float value = x[i + lane];
        lanes[lane] = std::fma(value, value, lanes[lane]);
        const float product = value * 1.7f + lanes[lane];
        out[i + lane] = std::sqrt(product > 0 ? product : -product) / (value * value + 0.3f);
      }
    }
    for (std::size_t lane = 0; lane < 8; ++lane) out[lane] += lanes[lane];
  }
};

}  // namespace

TEST_CASE("a kernel gives the same bits with and without vector instructions") {
  constexpr std::size_t kCount = 4096;
  const gradsync::CounterRandom random(1, 0);
  std::vector<float> x(kCount), baseline(kCount), vectorized(kCount);
  for (std::size_t i = 0; i < kCount; ++i) x[i] = static_cast<float>(random.normal(i));
  Everything{}(baseline.data(), x.data(), kCount);
  gradsync::simd::dispatch(Everything{}, vectorized.data(), x.data(), kCount);
  CHECK(baseline == vectorized);
}
