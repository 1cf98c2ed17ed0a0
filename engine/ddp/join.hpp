#pragma once

#include <cstdint>
#include <string>

#include "gradsync/core/error.hpp"
#include "gradsync/ddp/distributed_data_parallel.hpp"
#include "gradsync/ddp/join_options.hpp"

namespace gradsync {

/// Thrown by throw_on_early_termination, on every rank in the same iteration.
class EarlyTermination : public Error {
 public:
  explicit EarlyTermination(const std::string& message) : Error(ErrorCode::kMisuse, message) {}
};

/// Lets ranks with uneven numbers of inputs train together: torch.distributed.algorithms.Join.
///
/// Join join(ddp, options);
///     while (auto batch = loader.next()) { ... ddp.forward ... backward ... step ... }
///     join.finish();
///
/// In `finish`, a rank that ran out of inputs early shadows the collectives of the others with
/// zeros until the last rank is done, then takes over that rank's parameters. Every rank must
/// create its Join at the same point. Inside a join, each forward begins with a small all-reduce
/// that counts the active ranks.
///
/// Labels: inside a join, collectives are labeled with the number of iterations that all ranks
/// have taken together (over all joins of this DDP) instead of the rank's own step, and with the
/// epoch set before the join.
class Join {
 public:
  explicit Join(DistributedDataParallel& ddp, const JoinOptions& options = {});
  /// Leaves the join without communication, e.g. during stack unwinding.
  ~Join();
  Join(const Join&) = delete;
  Join& operator=(const Join&) = delete;

  /// Declares that this rank has no inputs left, and returns when no rank has any. Call it once.
  void finish();

 private:
  DistributedDataParallel& ddp_;
  JoinOptions options_;
};

}  // namespace gradsync
