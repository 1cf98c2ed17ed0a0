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

/// Arranges, before the simulation runs, for the faults that belong to the simulated world: links
/// that lose bandwidth or packets, or go down, at an instant and for a while.
void schedule_world_faults(SimEngine& engine, LinkLoads& loads,
                           const std::vector<FaultSpec>& faults);

/// What was wrong with the links of a run that ended at `end`, for the reports.
std::vector<WorldCondition> world_conditions(const std::vector<FaultSpec>& faults,
                                             const ImperfectionSpec& imperfections, Seconds end);

/// The room on the ranks' devices, by rank: null where no fault of kind slots limits it; empty
/// where none does at all.
std::vector<std::shared_ptr<DeviceSlots>> device_slots(const std::vector<FaultSpec>& faults,
                                                       int ranks);

}  // namespace gradsync
