#pragma once

#include <functional>
#include <vector>

#include "gradsync/core/clock.hpp"
#include "gradsync/testbed/scenario/fault_spec.hpp"
#include "gradsync/testbed/scenario/imperfection_spec.hpp"

namespace gradsync {

/// Called by the backend before the rank meets the others: the rank arrives late or, with `stall`,
/// never.
void come_to_rendezvous(const std::vector<FaultSpec>& faults, const ImperfectionSpec& imperfections,
                        int rank, Clock& clock, const std::function<void()>& stall);

/// The ranks that publish an unreachable address.
std::vector<int> ranks_with_wrong_address(const std::vector<FaultSpec>& faults, int world_size);

}  // namespace gradsync
