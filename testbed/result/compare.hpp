#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gradsync {

/// What `gradsync compare` finds in two run directories.
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
/// parameters in each bucket) and the parameter hashes step by step. Times are not compared, nor
/// which backend it was. Throws Error(kUsage) for a directory that holds no run.
Comparison compare_runs(const std::string& directory_a, const std::string& directory_b);

}  // namespace gradsync
