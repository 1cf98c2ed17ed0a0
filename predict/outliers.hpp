#pragma once

#include <string>
#include <vector>

#include "gradsync/core/units.hpp"

namespace gradsync {

/// The time of an all-reduce of some size.
struct MeasuredTime {
  int ranks = 0;
  Bytes bytes = 0;
  Seconds time{0};
};

/// Signs that measurements come from a faulty machine or a disturbed run, without using any
/// prediction: the time falls by more than 20% while the size grows; or, from 1 GiB on, the bus
/// bandwidth of a size is less than half of `bus_bandwidth`, the data sheet's value (0: unknown).
/// One sentence each; empty for a healthy table. Rows in any order, with any numbers of ranks.
std::vector<std::string> outlier_signs(const std::vector<MeasuredTime>& rows,
                                       BytesPerSecond bus_bandwidth);

}  // namespace gradsync
