#pragma once

#include <optional>
#include <string>

#include "backends/store/store.hpp"
#include "engine/core/error.hpp"

namespace gradsync {

/// The first thing that went wrong in a job. Whoever notices it (a rank, or the launcher whose
/// child died) publishes it through the store; the first one wins, and every rank's watcher ends
/// its rank.
struct Failure {
  int rank = -1;  ///< whose failure it is (not who noticed it)
  ErrorCode code = ErrorCode::kInternal;
  std::string cause;  ///< e.g. "timed out after 10 s in allreduce #5 ..." or "died (signal 9)"
  Seconds time{0};    ///< seconds since the epoch, of the machine that noticed it

  /// "rank 2 died (signal 9)"
  std::string describe() const;
};

/// Publishes `failure` unless there is one; returns the one that holds.
Failure publish_failure(Store& store, const Failure& failure, Seconds timeout);
/// The failure, if one has been published.
std::optional<Failure> find_failure(Store& store, Seconds timeout);
/// Blocks until a failure is published; StoreTimeout if none is.
Failure wait_for_failure(Store& store, Seconds timeout);

}  // namespace gradsync
