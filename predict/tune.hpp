#pragma once

#include <functional>
#include <string>
#include <vector>

#include "gradsync/predict/point_result.hpp"

namespace gradsync {

/// DDP's bucket settings, ddp.bucket_cap_mb and ddp.first_bucket_cap_mb, as JSON: a number of MiB
/// or "null" (PyTorch's default; a first bucket that follows `cap`).
struct BucketSetting {
  std::string cap = "null";
  std::string first = "null";
  bool operator==(const BucketSetting&) const = default;
};

/// A setting and its result.
struct TuneTrial {
  BucketSetting setting;
  PointResult result;
};

/// The relative uncertainty of the difference between two simulated steps, estimated from a
/// calibrated Gloo and published training steps (docs/accuracy.md).
inline constexpr double kStepUncertainty = 0.03;

struct TuneAnswer {
  TuneTrial baseline;  ///< the unchanged scenario
  TuneTrial best_cap;  ///< with the scenario's own first bucket
  TuneTrial best;
  std::vector<TuneTrial> trials;        ///< trials of the cap, by cap; "null" first
  std::vector<TuneTrial> first_trials;  ///< trials of the first bucket with the best cap, by size
  /// Lower bound of a step for any buckets: data, forward, backward and optimizer alone.
  double least_seconds = 0;
  /// Relative uncertainty of a simulated step: a smaller gain is not significant.
  double uncertainty = kStepUncertainty;

  /// Relative gain of the best setting over the scenario's own: 0.1 is a step shorter by 10%.
  double gain() const;
  bool is_worth_it() const { return gain() > uncertainty; }
};

/// Searches the bucket_cap_mb, and with it the first_bucket_cap_mb, with the shortest median step.
///
/// Tries caps of 1, 2, 5, 10, 25, 50, 100, ... MiB up to the first that holds the whole model in
/// one bucket, PyTorch's default and the scenario's own cap. Then tries, twice, the geometric means
/// between the best cap and its neighbors, rounded to two digits; more digits mean nothing, because
/// the step time is not a smooth function of the cap. With the best cap, it tries first buckets of
/// 0.1, 0.2, 0.5, 1, ... MiB below the cap in the same way. Of settings that are equal within 0.1%,
/// the one with the smallest cap wins, because its buckets take the least memory, and then the one
/// with the current first bucket.
///
/// `run` measures a list of settings, possibly in parallel, and returns the results in list order.
using RunSettings = std::function<std::vector<PointResult>(const std::vector<BucketSetting>&)>;
TuneAnswer tune_buckets(const BucketSetting& baseline, Bytes model_bytes, const RunSettings& run);

/// The answer as text: what to set, the gain, the time breakdown before and after, and why.
std::string describe(const TuneAnswer& answer);

}  // namespace gradsync
