#pragma once

#include <string>
#include <vector>

#include "engine/faults/fault_spec.hpp"
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

}  // namespace gradsync
