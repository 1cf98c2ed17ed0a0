#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "gradsync/testbed/result/run_result.hpp"
#include "gradsync/testbed/scenario/scenario.hpp"

namespace gradsync {

/// The result of one run in a few numbers: a row of a sweep. All times in seconds.
///
/// Figures exclude the first step, whose buckets differ from the rest (DDP rebuilds them before the
/// second step), unless it is the only step.
struct PointResult {
  std::string outcome;  ///< "completed", "hang", ...
  std::int64_t world_size = 0;
  std::int64_t steps = 0;  ///< number of steady steps
  double step_p50 = 0;     ///< median step; a step lasts as long as on its slowest rank
  double step_p95 = 0;
  /// From the start of a step to the start of the next, including what lies between them (e.g. a
  /// checkpoint), mean over steps and ranks. For the last step, its own duration.
  double period = 0;
  /// Breakdown of a rank's step, mean over steps and ranks. The five add up to the step.
  double data = 0;
  double forward = 0;
  double backward = 0;   ///< compute; overlaps with communication
  double exposed = 0;    ///< communication that backward waits for at its end
  double optimizer = 0;  ///< including clipping
  /// From the launch of the first bucket to the end of the last, overlapped or not.
  double communication = 0;
  std::int64_t buckets = 0;
  Bytes bucket_bytes = 0;  ///< of all buckets
  /// The busiest link of the simulated network and its utilization. In the analytic model, an
  /// estimate (marked as such) of the link that limits an all-reduce of the mean bucket.
  std::string bottleneck;
  std::string error;  ///< what ended the run, if it did not complete
};

PointResult summarize(const Scenario& scenario, const RunOutcome& outcome, const RunResult& result);

nlohmann::ordered_json to_json(const PointResult& point);
PointResult point_result_from_json(const nlohmann::ordered_json& json);

}  // namespace gradsync
