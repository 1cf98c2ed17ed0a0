#pragma once

#include "gradsync/simulator/kernel/link_loads.hpp"
#include "gradsync/simulator/platform/platform.hpp"
#include "gradsync/testbed/scenario/imperfection_spec.hpp"

namespace gradsync {

/// Sets up slow and flapping links before the simulation runs. Throws ConfigError with the location
/// of a link that does not exist in the platform.
void arrange_links(const ImperfectionSpec& spec, SimEngine& engine, Platform& platform,
                   LinkLoads& loads);

/// Same, for the traffic with which `platform` was built. It starts with the job and ends when
/// nothing is left of the job that could continue.
void arrange_traffic(SimEngine& engine, const Platform& platform, LinkLoads& loads);

}  // namespace gradsync
