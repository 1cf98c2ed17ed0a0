#pragma once

#include <functional>
#include <vector>

#include "gradsync/core/clock.hpp"
#include "gradsync/testbed/scenario/fault_spec.hpp"

namespace gradsync {

/// The clean-up of a failed rank: takes long or, with `block`, never ends.
void clean_up(const std::vector<FaultSpec>& faults, int rank, Clock& clock,
              const std::function<void()>& block);

}  // namespace gradsync
