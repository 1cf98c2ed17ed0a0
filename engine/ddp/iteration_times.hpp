#pragma once

#include "gradsync/core/units.hpp"

namespace gradsync {

/// PyTorch's five timestamps of a synchronized iteration, absolute on the rank's clock; negative
/// until the iteration reaches the event.
struct IterationTimes {
  Seconds forward_start{-1};
  Seconds backward_compute_start{-1};  ///< forward has ended
  Seconds backward_compute_end{-1};    ///< last hook has run; later waits are exposed
  Seconds backward_comm_start{-1};     ///< the first bucket was launched
  Seconds backward_comm_end{-1};       ///< the last bucket's result is in the gradients
};

}  // namespace gradsync
