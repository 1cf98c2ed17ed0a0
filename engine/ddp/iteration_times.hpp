#pragma once

#include "gradsync/core/units.hpp"

namespace gradsync {

/// PyTorch's five timestamps of a synchronised iteration, absolute on the rank's clock; negative
/// where the iteration has not come there.
struct IterationTimes {
  Seconds forward_start{-1};
  Seconds backward_compute_start{-1};  ///< forward is done
  Seconds backward_compute_end{-1};    ///< the last hook has run; what follows is exposed waiting
  Seconds backward_comm_start{-1};     ///< the first bucket was launched
  Seconds backward_comm_end{-1};       ///< the last bucket's result is in the gradients
};

}  // namespace gradsync
