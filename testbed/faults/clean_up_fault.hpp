#pragma once

#include <functional>
#include <vector>

#include "gradsync/core/clock.hpp"
#include "gradsync/testbed/scenario/fault_spec.hpp"

namespace gradsync {

/// What a rank does that has failed, before it goes: takes long to clean up or, by `block`, for
/// ever.
void clean_up(const std::vector<FaultSpec>& faults, int rank, Clock& clock,
              const std::function<void()>& block);

}  // namespace gradsync
