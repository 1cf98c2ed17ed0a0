#pragma once

#include "gradsync/simulator/kernel/link_loads.hpp"
#include "gradsync/simulator/platform/platform.hpp"
#include "gradsync/testbed/scenario/imperfection_spec.hpp"

namespace gradsync {

/// Arranges, before the simulation runs, for slow and flapping links. Throws ConfigError with the
/// place of a link that the platform does not have.
void arrange_links(const ImperfectionSpec& spec, SimEngine& engine, Platform& platform,
                   LinkLoads& loads);

/// The same for the traffic with which `platform` was built. It starts with the job, and ends when
/// nothing is left of that which could go on.
void arrange_traffic(SimEngine& engine, const Platform& platform, LinkLoads& loads);

}  // namespace gradsync
