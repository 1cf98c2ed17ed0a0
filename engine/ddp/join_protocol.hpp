#pragma once

#include <cstdint>
#include <vector>

#include "gradsync/comm/process_group.hpp"
#include "gradsync/ddp/join.hpp"
#include "gradsync/ddp/loop_position.hpp"

namespace gradsync {

/// The small all-reduces of one number by which the ranks of a join keep together. They come in a
/// fixed order: see the traces in tests/data/pytorch/collectives.json.
class JoinProtocol {
 public:
  /// `position` labels the collectives and must outlive this.
  JoinProtocol(ProcessGroup& group, const LoopPosition& position, Device& device,
               const JoinOptions& options);

  /// A rank that trains: "I am here". Throws EarlyTermination if another one ran out of inputs and
  /// throw_on_early_termination is set.
  void announce_forward();
  /// A rank that trains: whether it will reduce gradients in this iteration.
  void announce_backward(bool reduces);
  /// How many ranks train in this iteration; waits for what announce_forward started.
  double active_ranks();

  /// A rank without inputs: how many others train. Throws EarlyTermination if there are any and
  /// throw_on_early_termination is set.
  std::int64_t count_active_ranks();
  /// A rank without inputs: whether the others reduce gradients in this iteration.
  bool others_reduce();

  /// The highest rank that says `candidate`.
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
  std::vector<Reduction> unread_;  // whose result this rank does not need
};

}  // namespace gradsync
