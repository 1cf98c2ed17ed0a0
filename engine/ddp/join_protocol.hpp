#pragma once

#include <cstdint>
#include <vector>

#include "gradsync/comm/process_group.hpp"
#include "gradsync/ddp/join.hpp"
#include "gradsync/ddp/loop_position.hpp"

namespace gradsync {

/// The scalar all-reduces that keep the ranks of a join in step. Their order is fixed: see the
/// traces in tests/data/pytorch/collectives.json.
class JoinProtocol {
 public:
  /// `position` labels the collectives and must outlive this object.
  JoinProtocol(ProcessGroup& group, const LoopPosition& position, Device& device,
               const JoinOptions& options);

  /// Active rank: announces its forward. Throws EarlyTermination if another rank ran out of inputs
  /// and throw_on_early_termination is set.
  void announce_forward();
  /// Active rank: announces whether it will reduce gradients in this iteration.
  void announce_backward(bool reduces);
  /// The number of active ranks in this iteration; waits for the all-reduce of announce_forward.
  double active_ranks();

  /// Joined rank: the number of active ranks. Throws EarlyTermination if there are any and
  /// throw_on_early_termination is set.
  std::int64_t count_active_ranks();
  /// Joined rank: whether the active ranks reduce gradients in this iteration.
  bool others_reduce();

  /// The highest rank that passes `candidate` = true.
  int highest_rank(bool candidate);

  const JoinOptions& options() const noexcept { return options_; }

 private:
  struct Reduction {
    Tensor tensor;
    WorkPtr work;
    double wait() const;
  };
  Reduction sum(double value, const char* what);

  ProcessGroup& group_;
  const LoopPosition& position_;
  Device& device_;
  JoinOptions options_;
  Reduction active_;
  std::vector<Reduction> unread_;  // reductions whose results this rank does not need
};

}  // namespace gradsync
