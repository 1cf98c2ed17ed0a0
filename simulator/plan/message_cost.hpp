#pragma once

#include "gradsync/core/units.hpp"
#include "gradsync/simulator/plan/phases.hpp"

namespace gradsync {

/// What a library adds to a message from one rank to another, beside the time of its bytes.
struct MessageCost {
  Seconds base{0};         ///< before the first byte
  double wire_factor = 1;  ///< bytes on the wire per byte of data
  Hops hops;               ///< the latency of the way, with that of the protocol
};

}  // namespace gradsync
