#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gradsync/comm/process_group.hpp"
#include "gradsync/core/clock.hpp"
#include "gradsync/core/error.hpp"
#include "gradsync/ddp/loop_position.hpp"
#include "gradsync/tensor/device.hpp"
#include "gradsync/testbed/faults/process_end.hpp"
#include "gradsync/testbed/faults/rank_faults.hpp"

namespace gradsync {

/// Executes the faults of a rank that are events, at their point of the loop.
///
/// Belongs to one rank, like the objects it uses.
class FaultEvents {
 public:
  /// Access to the rank.
  struct Rank {
    ProcessGroup* group = nullptr;
    Clock* clock = nullptr;
    Device* device = nullptr;
    /// The rank enters another phase.
    std::function<void(Phase)> enter = [](Phase) {};
    /// The program's handler has caught an exception.
    std::function<void(const std::string& what)> raised = [](const std::string&) {};
    /// Runs a forward pass without gradients.
    std::function<void(bool through_ddp)> evaluate = [](bool) {};
    /// Ends the rank's process; does not return.
    std::function<void(const ProcessEnd&)> end_process;
  };

  /// `faults` must outlive it.
  FaultEvents(const RankFaults& faults, Rank rank) : faults_(&faults), rank_(std::move(rank)) {}

  /// Executes everything that belongs to this point of the loop, in scenario order. Throws
  /// SkippedStep, an Error(kInternal), or what a collective throws; may not return.
  void happen(FaultPoint point, const LoopPosition& at);
  /// After a step: evaluation, checkpoint and user collectives.
  void happen_after_step(const LoopPosition& at);
  /// Outside the steps, in a separate phase.
  void happen_outside_steps(FaultPoint point, const LoopPosition& last);

 private:
  struct Place {
    const LoopPosition& at;
    Phase phase;
  };

  // One function per kind of event.
  void happen(const SkipFault& skip, const Place& place);
  void happen(const ThrowFault& exception, const Place& place);
  void happen(const ExitFault& exit, const Place& place);
  void happen(const KillFault& kill, const Place& place);
  void happen(const DelayFault& delay, const Place& place);
  void happen(const StallFault& stall, const Place& place);
  void happen(const CollectiveFault& call, const Place& place);
  void happen(const EvaluateFault& evaluation, const Place& place);
  void happen(const GroupFault& group, const Place& place);

  /// The error of an exception caught by the program's handler, which holds it while other faults
  /// happen.
  std::optional<Error> taken_by_handler(const ThrowFault& exception, const Place& place);
  template <class Kind>
  std::optional<Error> taken_by_handler(const Kind&, const Place&) {
    return std::nullopt;
  }
  Error error_of(const ThrowFault& exception, const Place& place) const;
  ProcessGroup& group_of(const CollectiveFault& call) const;

  const RankFaults* faults_;
  Rank rank_;
  std::map<std::string, std::shared_ptr<ProcessGroup>> groups_;
  std::vector<WorkPtr> in_flight_;  // collectives that the step did not wait for
};

}  // namespace gradsync
