#pragma once

#include <functional>
#include <string>
#include <vector>

#include "predict/point_result.hpp"

namespace gradsync {

/// A setting of DDP's buckets and what it came to.
struct TuneTrial {
  std::string value;  ///< of ddp.bucket_cap_mb: a number of MiB, or "null", PyTorch's default
  PointResult result;
};

struct TuneAnswer {
  TuneTrial baseline;  ///< the scenario as it is
  TuneTrial best;
  std::vector<TuneTrial> trials;  ///< all, by cap; "null" first
  /// A step cannot be shorter, whatever the buckets: data, forward, backward and optimizer alone.
  double least_seconds = 0;
};

/// Looks for the bucket_cap_mb with the shortest median step.
///
/// Tried are 1, 2, 5, 10, 25, 50, 100, ... MiB up to the first that holds the whole model in one
/// bucket, PyTorch's default and the scenario's own; then, twice, the geometric means between the
/// best and its neighbours, rounded to two digits: a step time over the cap is not smooth, so more
/// digits mean nothing. Of settings that are equal to a thousandth the one with the smallest cap
/// wins: its buckets take the least memory.
///
/// `baseline` is the scenario's value as JSON. `run` measures a list of values, in any order of
/// time, and returns the results in that of the list.
TuneAnswer tune_bucket_cap(
    const std::string& baseline, Bytes model_bytes,
    const std::function<std::vector<PointResult>(const std::vector<std::string>& values)>& run);

/// The answer for a person: what to set, what it gains, where the time goes before and after, and
/// why.
std::string describe(const TuneAnswer& answer);

}  // namespace gradsync
