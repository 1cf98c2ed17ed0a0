#pragma once

#include <cstdint>
#include <span>

namespace gradsync {

/// The list must not be empty.
double mean(std::span<const double> values);

/// The percentile of a sorted list, with linear interpolation between the two nearest values
/// (numpy.percentile's default). The list must not be empty.
double percentile(std::span<const double> sorted, double percent);

/// The first steady step. Step 0 is excluded, because its buckets differ from those of the other
/// steps (DDP rebuilds them before step 1), unless it is the only step.
constexpr std::int64_t first_steady_step(std::int64_t steps) noexcept {
  return steps > 1 ? 1 : 0;
}

}  // namespace gradsync
