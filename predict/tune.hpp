#pragma once

#include <functional>
#include <string>
#include <vector>

#include "gradsync/predict/point_result.hpp"

namespace gradsync {

/// A setting of DDP's buckets: ddp.bucket_cap_mb and ddp.first_bucket_cap_mb as JSON, a number of
/// MiB or "null" (PyTorch's default, and a first bucket as `cap` says).
struct BucketSetting {
  std::string cap = "null";
  std::string first = "null";
  bool operator==(const BucketSetting&) const = default;
};

/// What a setting came to.
struct TuneTrial {
  BucketSetting setting;
  PointResult result;
};

/// How far the difference of two simulated steps can be from that of real ones: what a calibrated
/// Gloo and published training steps showed (docs/accuracy.md).
inline constexpr double kStepUncertainty = 0.03;

struct TuneAnswer {
  TuneTrial baseline;  ///< the scenario as it is
  TuneTrial best_cap;  ///< with the scenario's own first bucket
  TuneTrial best;
  std::vector<TuneTrial> trials;        ///< of caps, by cap; "null" first
  std::vector<TuneTrial> first_trials;  ///< of the first bucket, with the best cap, by its size
  /// A step cannot be shorter, whatever the buckets: data, forward, backward and optimizer alone.
  double least_seconds = 0;
  /// Of a simulated step, as a share of it: a smaller gain is no difference.
  double uncertainty = kStepUncertainty;

  /// Of the step, by the best setting in place of the scenario's own: 0.1 is 10% less.
  double gain() const;
  bool is_worth_it() const { return gain() > uncertainty; }
};

/// Looks for the bucket_cap_mb, and with it for the first_bucket_cap_mb, with the shortest median
/// step.
///
/// Tried are caps of 1, 2, 5, 10, 25, 50, 100, ... MiB up to the first that holds the whole model
/// in one bucket, PyTorch's default and the scenario's own; then, twice, the geometric means
/// between the best and its neighbours, rounded to two digits: a step time over the cap is not
/// smooth, so more digits mean nothing. With the best cap, first buckets of 0.1, 0.2, 0.5, 1, ...
/// MiB below it are tried in the same way. Of settings that are equal to a thousandth the one with
/// the smallest cap wins, whose buckets take the least memory, and with the first bucket that is
/// there already.
///
/// `run` measures a list of settings, in any order of time, and returns the results in that of the
/// list.
using RunSettings = std::function<std::vector<PointResult>(const std::vector<BucketSetting>&)>;
TuneAnswer tune_buckets(const BucketSetting& baseline, Bytes model_bytes, const RunSettings& run);

/// The answer for a person: what to set, what it gains, where the time goes before and after, and
/// why.
std::string describe(const TuneAnswer& answer);

}  // namespace gradsync
