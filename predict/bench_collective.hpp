#pragma once

#include <optional>
#include <string>

#include "gradsync/predict/bench_log_table.hpp"

namespace gradsync {

/// The evidence that a run is of a collective other than all-reduce.
struct OtherCollective {
  std::string name;  ///< "reduce", "all_gather or alltoall"
  std::string sign;  ///< "root 0, not -1"
};

/// Detects a run of another collective, from the name in the log, roots, reduction operations, the
/// count next to the size, and busbw / algbw, which is 2(n-1)/n for an all-reduce of n ranks.
/// `ranks` 0: unknown.
std::optional<OtherCollective> other_collective(const LoggedRun& run, int ranks);

/// The number of ranks implied by an all-reduce's busbw / algbw, if the printed digits determine
/// it. Never two: an all-reduce of two ranks has the same ratio as a broadcast.
std::optional<int> implied_ranks(const LoggedRun& run);

}  // namespace gradsync
