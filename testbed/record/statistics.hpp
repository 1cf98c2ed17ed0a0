#pragma once

#include <cstdint>
#include <span>

namespace gradsync {

/// Of a list that is not empty.
double mean(std::span<const double> values);

/// The value below which `percent` of a sorted list lies, with linear interpolation between the two
/// nearest values (numpy.percentile's default). The list must not be empty.
double percentile(std::span<const double> sorted, double percent);

/// The first step that is like those after it: all but step 0, which has other buckets than the
/// rest (DDP builds them anew before step 1). 0 where there is no other step.
constexpr std::int64_t first_steady_step(std::int64_t steps) noexcept {
  return steps > 1 ? 1 : 0;
}

}  // namespace gradsync
