#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gradsync {

/// The result of `gradsync compare` for two run directories.
struct Comparison {
  bool equal = false;
  /// One sentence: the first difference (lowest step, then rank), or what is equal, with counts.
  std::string summary;
  std::vector<std::string> notes;  ///< what could not be compared, and why
  std::int64_t ranks = 0;
  std::int64_t events = 0;  ///< collectives compared, over all ranks
  std::int64_t hashes = 0;  ///< parameter hashes compared
};

/// Compares, rank by rank, the sequence of collectives (operation, elements, dtype, label, and the
/// parameters in each bucket) and the parameter hashes of each step. Ignores times and the backend.
/// Throws Error(kUsage) for a directory that holds no run.
Comparison compare_runs(const std::string& directory_a, const std::string& directory_b);

}  // namespace gradsync
