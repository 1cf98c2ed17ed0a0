#pragma once

#include <functional>
#include <memory>
#include <mutex>

#include "gradsync/comm/process_group.hpp"
#include "gradsync/core/clock.hpp"
#include "gradsync/tensor/device.hpp"
#include "gradsync/testbed/faults/process_end.hpp"
#include "gradsync/testbed/rank/factories.hpp"
#include "gradsync/testbed/record/rank_report.hpp"
#include "gradsync/testbed/scenario/scenario.hpp"

namespace gradsync {

/// What a backend gives to one rank.
struct RankRuntime {
  ProcessGroup* process_group = nullptr;
  Clock* clock = nullptr;
  /// Where the parameters live. Replayed models use the meta device in the simulator.
  Device* device = nullptr;
  /// What the ranks of a process share (load_inputs); null: the rank loads its own.
  std::shared_ptr<const RunInputs> inputs;
  /// Called after each step with its record, on the rank's thread or actor: progress for a person.
  /// Must not wait for other ranks. May be empty.
  std::function<void(const StepRecord&)> on_step;
  /// Held while the report changes, for a backend that reads it meanwhile; null: none does.
  std::mutex* report_mutex = nullptr;
  /// Ends the rank's process without a word, where a fault says so (FaultEvents::Rank).
  std::function<void(const ProcessEnd&)> end_process = {};
  /// Called when the rank has failed, before it cleans up: what blocks there must not keep the
  /// report from others. May be empty.
  std::function<void()> before_clean_up = {};
  /// Does not return, as a fault wants it: the rank is ended from outside.
  std::function<void()> block = {};
};

/// Trains one rank from the first collective to shutdown. The same function on every backend: a
/// Gloo process calls it once, a simulated run once in each actor.
///
/// Fills `report` as it goes, so that a caller who stops the rank (a deadlock in the simulator, a
/// signal) can still read where it was; `collectives` and `flight` are filled when the function is
/// left, in whichever way. The process group must be new: the rank observes its flight recorder.
///
/// Returns normally when the rank finished. Finished it is as soon as its loop is over, whatever
/// happens to the others while it waits for them in shutdown: their failure is kept in
/// `report.error`, and the rank has still finished. An Error that ended the rank is recorded in the
/// report and rethrown. Where the scenario says train.check_hashes the ranks compare their
/// parameters after every train.hash_every steps, and all throw Error(kDesync) when they differ.
void run_rank(const Scenario& scenario, const RankRuntime& runtime, RankReport& report);

}  // namespace gradsync
