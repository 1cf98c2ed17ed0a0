#pragma once

#include <optional>
#include <string>

#include "gradsync/predict/bench_log_table.hpp"

namespace gradsync {

/// The sign by which a run was found to be of another collective than an all-reduce.
struct OtherCollective {
  std::string name;  ///< "reduce", "all_gather or alltoall"
  std::string sign;  ///< "root 0, not -1"
};

/// Whether a run is of another collective. Looked at are the name that the log gives, roots,
/// reduction operations, the count beside the size, and busbw / algbw, which is 2(n-1)/n for an
/// all-reduce of n ranks. `ranks` 0: not known.
std::optional<OtherCollective> other_collective(const LoggedRun& run, int ranks);

/// The number of ranks that busbw / algbw of an all-reduce implies, where the printed digits leave
/// one answer; rows of an all-reduce of two ranks look like a broadcast's, so two is never said.
std::optional<int> implied_ranks(const LoggedRun& run);

}  // namespace gradsync
