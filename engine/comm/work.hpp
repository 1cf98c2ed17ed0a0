#pragma once

#include <memory>

#include "gradsync/comm/flight_recorder.hpp"

namespace gradsync {

/// A collective under way, returned at once by ProcessGroup. Held by the rank that issued it and
/// used by its thread (or actor) alone.
class Work {
 public:
  virtual ~Work() = default;

  /// Returns when this rank has its result; the tensors of the call are then valid. Throws
  /// CommError when the collective failed or the group's timeout ended; the group is unusable
  /// afterwards. Calling it again returns at once (or throws the same error).
  ///
  /// In the simulator a wait switches to other ranks on the same thread: hold no lock and no
  /// reference into thread-local state across it.
  virtual void wait() = 0;

  /// True once `wait()` would return without waiting, also when it would throw.
  virtual bool is_completed() const = 0;
};

using WorkPtr = std::shared_ptr<Work>;

/// A work that is already done (one rank, no elements).
WorkPtr completed_work();

}  // namespace gradsync
