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

/// The environment that a backend provides to one rank.
struct RankRuntime {
  ProcessGroup* process_group = nullptr;
  Clock* clock = nullptr;
  /// The device of the parameters. In the simulator, replayed models use the meta device.
  Device* device = nullptr;
  /// Inputs shared by the ranks of a process (load_inputs); null: the rank loads its own.
  std::shared_ptr<const RunInputs> inputs;
  /// Called after each step with its record, on the rank's thread or actor, to show progress. Must
  /// not wait for other ranks. May be empty.
  std::function<void(const StepRecord&)> on_step;
  /// Held while the report changes, for a backend that reads it concurrently; null if none does.
  std::mutex* report_mutex = nullptr;
  /// Ends the rank's process without notifying anybody, for a fault (FaultEvents::Rank).
  std::function<void(const ProcessEnd&)> end_process = {};
  /// Called when the rank has failed, before its clean-up. The clean-up may block, so a backend can
  /// publish the report here. May be empty.
  std::function<void()> before_clean_up = {};
  /// Blocks forever, for a fault; the rank is ended from outside.
  std::function<void()> block = {};
};

/// Trains one rank, from the first collective to shutdown. All backends use this function: a Gloo
/// process calls it once, a simulated run once in each actor.
///
/// Fills `report` as it goes, so that a caller who stops the rank (a deadlock in the simulator, a
/// signal) can still read its position; `collectives` and `flight` are filled on every way out of
/// the function. The process group must be new: the rank observes its flight recorder.
///
/// Returns normally if the rank finished, which it has once its loop is over. A failure of another
/// rank during shutdown is stored in `report.error`, but the rank still counts as finished. An
/// Error that ends the rank is recorded in the report and rethrown. With train.check_hashes the
/// ranks compare their parameters after every train.hash_every steps, and all throw Error(kDesync)
/// if they differ.
void run_rank(const Scenario& scenario, const RankRuntime& runtime, RankReport& report);

}  // namespace gradsync
