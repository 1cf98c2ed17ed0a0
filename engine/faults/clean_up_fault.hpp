#pragma once

#include <functional>
#include <vector>

#include "engine/core/clock.hpp"
#include "engine/faults/fault_spec.hpp"

namespace gradsync {

/// What a rank does that has failed, before it goes: takes long to clean up or, by `block`, for
/// ever.
void clean_up(const std::vector<FaultSpec>& faults, int rank, Clock& clock,
              const std::function<void()>& block);

}  // namespace gradsync
