#pragma once

#include <cstddef>
#include <string>

#include "gradsync/comm/flight_recorder.hpp"
#include "gradsync/core/units.hpp"

namespace gradsync {

/// Options that the process groups of all backends have.
struct GroupOptions {
  /// Longest wait for the other ranks: while the group is made, in each collective, in shutdown.
  /// Positive; of simulated time in the simulator.
  Seconds timeout{30};
  std::string name = kDefaultGroupName;
  std::size_t flight_recorder_size = FlightRecorder::kDefaultCapacity;  ///< collectives
};

}  // namespace gradsync
