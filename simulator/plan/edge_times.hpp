#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "gradsync/simulator/plan/plan.hpp"

namespace gradsync {

/// Puts the numbers of the links from one rank to another into `links`; what was there goes.
using Route = std::function<void(int from, int to, std::vector<std::size_t>& links)>;
using LinkBandwidth = std::function<BytesPerSecond(std::size_t link)>;

/// The times of a phase's edges by the bytes on their links and by nothing else: a link that
/// several edges pass takes as long as all their bytes need. `wire` bytes are all of the
/// collective's.
EdgeTimes edge_times(const PlanPhase& phase, double wire, const Route& route,
                     const LinkBandwidth& bandwidth);

}  // namespace gradsync
