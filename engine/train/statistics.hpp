#pragma once

#include <span>

namespace gradsync {

/// Of a list that is not empty.
double mean(std::span<const double> values);

/// The value below which `percent` of a sorted list lies, with linear interpolation between the two
/// nearest values (numpy.percentile's default). The list must not be empty.
double percentile(std::span<const double> sorted, double percent);

}  // namespace gradsync
