#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gradsync/simulator/collective/device_slots.hpp"
#include "gradsync/simulator/kernel/link_loads.hpp"
#include "gradsync/simulator/kernel/sim_engine.hpp"
#include "gradsync/testbed/record/rank_report.hpp"
#include "gradsync/testbed/scenario/fault_spec.hpp"
#include "gradsync/testbed/scenario/imperfection_spec.hpp"

namespace gradsync {

/// Schedules the faults of the simulated network before the simulation runs: links that lose
/// bandwidth or packets, or go down, at some time and for a while.
void schedule_world_faults(SimEngine& engine, LinkLoads& loads,
                           const std::vector<FaultSpec>& faults);

/// The link faults of a run that ended at `end`, for the reports.
std::vector<WorldCondition> world_conditions(const std::vector<FaultSpec>& faults,
                                             const ImperfectionSpec& imperfections, Seconds end);

/// The device slots by rank: null if no fault of kind slots limits the rank's device; empty if
/// there is no such fault.
std::vector<std::shared_ptr<DeviceSlots>> device_slots(const std::vector<FaultSpec>& faults,
                                                       int ranks);

}  // namespace gradsync
