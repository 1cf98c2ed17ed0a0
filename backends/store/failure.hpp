#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gradsync/backends/store/store.hpp"
#include "gradsync/comm/comm_error.hpp"
#include "gradsync/core/error.hpp"

namespace gradsync {

/// How a job ends, as agreed through the store: either every rank announces its end, or something
/// fails. Whoever notices the failure (a rank, or the launcher whose child died) publishes it. The
/// first published failure holds, and every rank waits for either outcome on a separate thread.
struct Failure {
  int rank = -1;  ///< the failed rank (not the one that noticed); -1 if none
  ErrorCode code = ErrorCode::kInternal;
  std::string cause;  ///< e.g. "timed out after 10 s in allreduce #5 ..." or "died (signal 9)"
  Seconds time{0};    ///< since the epoch, on the clock of the machine that noticed

  /// "rank 2 died (signal 9)"
  std::string describe() const;
};

/// The error that `failure` causes in a collective of `rank`: the rank's own error, the death or
/// mismatch that ended the job, or kPeerFailed.
CommError error_for(const Failure& failure, int rank, const CollectiveRecord& record);

/// Publishes `failure` (with the current time) unless there already is one; returns the one that
/// holds.
Failure publish_failure(Store& store, Failure failure, Seconds timeout);
/// The failure, if one has been published.
std::optional<Failure> find_failure(Store& store, Seconds timeout);

/// Announces that `rank` has finished all its work.
void announce_end(Store& store, int rank, int world_size, Seconds timeout);
/// Blocks until all ranks have announced their end (nullopt) or there is a failure. Throws
/// StoreTimeout if neither happens in time.
std::optional<Failure> wait_for_end(Store& store, Seconds timeout);
/// The ranks that have not announced their end.
std::vector<int> ranks_not_ended(Store& store, int world_size, Seconds timeout);

}  // namespace gradsync
