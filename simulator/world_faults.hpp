#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/faults/fault_spec.hpp"
#include "simulator/device_slots.hpp"
#include "simulator/link_loads.hpp"
#include "simulator/platform.hpp"
#include "simulator/sim_engine.hpp"

namespace gradsync {

/// Arranges, before the simulation runs, for the faults that belong to the simulated world: cables
/// of a node that lose bandwidth or go down at an instant. Returns a line for each, for the
/// reports: "the cables of node 1 are down".
std::vector<std::string> schedule_world_faults(SimEngine& engine, const Platform& platform,
                                               LinkLoads& loads, const ClusterSpec& cluster,
                                               int ranks, const std::vector<FaultSpec>& faults);

/// The room on the ranks' devices, by rank: null where no fault of kind slots limits it; empty
/// where none does at all.
std::vector<std::shared_ptr<DeviceSlots>> device_slots(const std::vector<FaultSpec>& faults,
                                                       int ranks);

}  // namespace gradsync
