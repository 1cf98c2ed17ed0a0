#pragma once

#include <string>
#include <vector>

#include "gradsync/predict/accuracy.hpp"

namespace gradsync {

/// How far predictions are off in a range of sizes.
struct RangeError {
  std::string range;  ///< "64 KiB to 1 MiB"
  std::size_t rows = 0;
  double geometric_mean = 0;  ///< error, as geometric_mean_error
  double worst = 0;           ///< of largest magnitude, with its sign
};

/// By ranges of sizes that have rows: latencies, small buckets, buckets, and beyond.
std::vector<RangeError> errors_by_size(const std::vector<AccuracyRow>& rows);

/// A line a range, for a person.
std::string describe(const std::vector<RangeError>& errors);

/// "8 MiB", "100 B": as people write sizes.
std::string size_text(Bytes bytes);

}  // namespace gradsync
