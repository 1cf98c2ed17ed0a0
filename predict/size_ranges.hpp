#pragma once

#include <string>
#include <vector>

#include "gradsync/predict/accuracy.hpp"

namespace gradsync {

/// The prediction error in a range of sizes.
struct RangeError {
  std::string range;  ///< "64 KiB to 1 MiB"
  std::size_t rows = 0;
  double geometric_mean = 0;  ///< as geometric_mean_error
  double worst = 0;           ///< error of largest magnitude, with its sign
};

/// One entry per range that has rows: latencies, small buckets, buckets, and beyond.
std::vector<RangeError> errors_by_size(const std::vector<AccuracyRow>& rows);

/// As text, one line per range.
std::string describe(const std::vector<RangeError>& errors);

/// "8 MiB", "100 B".
std::string size_text(Bytes bytes);

}  // namespace gradsync
