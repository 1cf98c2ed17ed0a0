#pragma once

#include <cstddef>
#include <string>

#include "gradsync/comm/flight_recorder.hpp"
#include "gradsync/core/units.hpp"

namespace gradsync {

/// Options shared by the process groups of all backends.
struct GroupOptions {
  /// Longest wait for the other ranks while the group is created, in each collective, and in
  /// shutdown. Positive. Simulated time in the simulator, wall time elsewhere.
  Seconds timeout{30};
  std::string name = kDefaultGroupName;
  std::size_t flight_recorder_size = FlightRecorder::kDefaultCapacity;  ///< in collectives
};

}  // namespace gradsync
