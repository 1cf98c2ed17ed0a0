#pragma once

#include <memory>

#include "gradsync/comm/flight_recorder.hpp"

namespace gradsync {

/// A collective in flight, as returned by ProcessGroup. Used only by the thread (or actor) of the
/// rank that issued it.
class Work {
 public:
  virtual ~Work() = default;

  /// Blocks until this rank has its result; the tensors of the call are then valid. Throws
  /// CommError if the collective failed or timed out; the group is unusable afterwards. Further
  /// calls return at once or throw the same error.
  ///
  /// In the simulator, a wait switches to other ranks on the same thread, so hold no lock and no
  /// reference into thread-local state across it.
  virtual void wait() = 0;

  /// True if `wait()` would return or throw without blocking.
  virtual bool is_completed() const = 0;
};

using WorkPtr = std::shared_ptr<Work>;

/// A work that is already complete (single rank, or no elements).
WorkPtr completed_work();

}  // namespace gradsync
