#pragma once

#include <functional>

#include "gradsync/comm/process_group.hpp"
#include "gradsync/core/clock.hpp"
#include "gradsync/core/units.hpp"
#include "gradsync/testbed/scenario/scenario.hpp"

namespace gradsync {

/// Runs `rank` once per rank of a simulated job, with real data on the CPU: the counterpart of
/// run_on_gloo. All ranks run in this process, on one thread; a rank that waits lets another one
/// run. `rank` issues its collectives on the group and must not shut it down: that is done here,
/// after it has returned.
///
/// Returns the simulated time at which the last rank was done. Throws the Error of the rank that
/// failed first; Error(kTimeout), naming a rank and its collective, if ranks wait for others that
/// never come; ConfigError for a cluster that does not fit. One call at a time per process.
Seconds run_on_simulator(int ranks, const std::function<void(ProcessGroup&, Clock&)>& rank,
                         const ClusterSpec& cluster = {});

}  // namespace gradsync
