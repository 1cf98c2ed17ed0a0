#pragma once

#include <string>
#include <vector>

#include "gradsync/core/units.hpp"

namespace gradsync {

/// What an all-reduce of some size took.
struct MeasuredTime {
  int ranks = 0;
  Bytes bytes = 0;
  Seconds time{0};
};

/// The signs that measurements are those of a sick machine or a disturbed run, by rules that look
/// at no prediction: the time falls by more than 20% while the size grows; or from 1 GiB on the
/// bus bandwidth of any size is less than half of `bus_bandwidth`, what the data sheet promises
/// (0: not known). A sentence each; empty for a healthy table. Rows in any order, of any ranks.
std::vector<std::string> outlier_signs(const std::vector<MeasuredTime>& rows,
                                       BytesPerSecond bus_bandwidth);

}  // namespace gradsync
