#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "gradsync/testbed/result/run_result.hpp"
#include "gradsync/testbed/scenario/scenario.hpp"

namespace gradsync {

/// What one run answers, in a few numbers: a row of a sweep. All times in seconds.
///
/// The steady steps are meant: all but the first, which has other buckets than the rest (DDP builds
/// them anew before the second). Where a run has one step, that is it.
struct PointResult {
  std::string outcome;  ///< "completed", "hang", ...
  std::int64_t world_size = 0;
  std::int64_t steps = 0;  ///< steady ones
  double step_p50 = 0;     ///< of a step, which lasts as long as on its slowest rank
  double step_p95 = 0;
  /// From the begin of a step to that of the next, mean over steps and ranks: with what lies
  /// between steps, such as a checkpoint. Of the last step its own length.
  double period = 0;
  /// Where the time of a rank's step goes, mean over steps and ranks. The five add up to its step.
  double data = 0;
  double forward = 0;
  double backward = 0;   ///< compute; communication goes on meanwhile
  double exposed = 0;    ///< communication that backward waits for at its end
  double optimizer = 0;  ///< clipping included
  /// From the launch of the first bucket to the end of the last, overlapped or not.
  double communication = 0;
  std::int64_t buckets = 0;
  Bytes bucket_bytes = 0;  ///< of all buckets
  /// The busiest link of the simulated network and how busy it is; of a closed form an estimate of
  /// which link sets the pace of an all-reduce of the mean bucket, and says so.
  std::string bottleneck;
  std::string error;  ///< what ended the run, where it did not complete
};

PointResult summarize(const Scenario& scenario, const RunOutcome& outcome, const RunResult& result);

nlohmann::ordered_json to_json(const PointResult& point);
PointResult point_result_from_json(const nlohmann::ordered_json& json);

}  // namespace gradsync
