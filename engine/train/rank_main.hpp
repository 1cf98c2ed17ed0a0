#pragma once

#include <functional>
#include <memory>

#include "engine/comm/process_group.hpp"
#include "engine/core/clock.hpp"
#include "engine/tensor/device.hpp"
#include "engine/train/rank_report.hpp"
#include "engine/train/scenario.hpp"

namespace gradsync {

/// What a world gives to one rank.
struct RankWorld {
  ProcessGroup* process_group = nullptr;
  Clock* clock = nullptr;
  /// Where the parameters live. Replayed models use the meta device in the simulator.
  Device* device = nullptr;
  /// Called after each step with its record, on the rank's thread or actor: progress for a person.
  /// Must not wait for other ranks. May be empty.
  std::function<void(const StepRecord&)> on_step;
};

/// Trains one rank from the first collective to shutdown. The same function in every world: a Gloo
/// process calls it once, a simulated run once in each actor.
///
/// Fills `report` as it goes, so that a caller who stops the rank (a deadlock in the simulator, a
/// signal) can still read where it was. Returns normally when the rank finished; an Error that ended
/// the rank is recorded in the report and rethrown.
void run_rank(const Scenario& scenario, const RankWorld& world, RankReport& report);

}  // namespace gradsync
