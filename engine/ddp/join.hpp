#pragma once

#include <cstdint>
#include <string>

#include "gradsync/core/error.hpp"
#include "gradsync/ddp/distributed_data_parallel.hpp"
#include "gradsync/ddp/join_options.hpp"

namespace gradsync {

/// What throw_on_early_termination throws, on every rank in the same iteration.
class EarlyTermination : public Error {
 public:
  explicit EarlyTermination(const std::string& message) : Error(ErrorCode::kMisuse, message) {}
};

/// Lets ranks with uneven numbers of inputs train together: torch.distributed.algorithms.Join.
///
///     Join join(ddp, options);
///     while (auto batch = loader.next()) { ... ddp.forward ... backward ... step ... }
///     join.finish();
///
/// A rank that leaves its loop early takes part in the collectives of the others with zeros until
/// the last one is done (`finish`), and then takes over the parameters of the last one. Every rank
/// makes its Join at the same point; inside, each forward begins with a small all-reduce that tells
/// who is still there.
///
/// Labels: within a join collectives count the iterations that all ranks take together (over all
/// joins of the DDP) in place of the rank's own step, and carry the epoch that was set before it.
class Join {
 public:
  explicit Join(DistributedDataParallel& ddp, const JoinOptions& options = {});
  /// Leaves the join without communication, e.g. when an error goes through.
  ~Join();
  Join(const Join&) = delete;
  Join& operator=(const Join&) = delete;

  /// This rank has no inputs left. Returns when no rank has; to be called once.
  void finish();

 private:
  DistributedDataParallel& ddp_;
  JoinOptions options_;
};

}  // namespace gradsync
