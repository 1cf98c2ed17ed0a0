#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "gradsync/simulator/plan/plan.hpp"

namespace gradsync {

/// Replaces the contents of `links` by the numbers of the links from one rank to another.
using Route = std::function<void(int from, int to, std::vector<std::size_t>& links)>;
using LinkBandwidth = std::function<BytesPerSecond(std::size_t link)>;

/// The times of a phase's edges, considering only the bytes on their links: a link used by several
/// edges takes as long as all their bytes need. `wire` is the number of bytes of the whole
/// collective.
EdgeTimes edge_times(const PlanPhase& phase, double wire, const Route& route,
                     const LinkBandwidth& bandwidth);

}  // namespace gradsync
