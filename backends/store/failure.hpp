#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gradsync/backends/store/store.hpp"
#include "gradsync/comm/comm_error.hpp"
#include "gradsync/core/error.hpp"

namespace gradsync {

/// How a job ends, told through the store: either every rank announces its end, or something goes
/// wrong. Whoever notices the failure (a rank, or the launcher whose child died) publishes it; the
/// first one holds, and every rank waits for either end in a thread of its own.
struct Failure {
  int rank = -1;  ///< whose failure it is (not who noticed it); -1 if it is no rank's
  ErrorCode code = ErrorCode::kInternal;
  std::string cause;  ///< e.g. "timed out after 10 s in allreduce #5 ..." or "died (signal 9)"
  Seconds time{0};    ///< since the epoch, by the clock of the machine that noticed it

  /// "rank 2 died (signal 9)"
  std::string describe() const;
};

/// What a failure of the job means for a collective of `rank`: its own error, the death or the
/// disagreement that ended all, or kPeerFailed.
CommError error_for(const Failure& failure, int rank, const CollectiveRecord& record);

/// Publishes `failure` (with the current time) unless there is one; returns the one that holds.
Failure publish_failure(Store& store, Failure failure, Seconds timeout);
/// The failure, if one has been published.
std::optional<Failure> find_failure(Store& store, Seconds timeout);

/// Says that `rank` has done all its work.
void announce_end(Store& store, int rank, int world_size, Seconds timeout);
/// Blocks until all ranks have announced their end (nothing) or one has failed (the failure);
/// StoreTimeout if neither comes.
std::optional<Failure> wait_for_end(Store& store, Seconds timeout);
/// The ranks that have not announced their end.
std::vector<int> ranks_not_ended(Store& store, int world_size, Seconds timeout);

}  // namespace gradsync
