#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/comm/flight_recorder.hpp"
#include "engine/core/error.hpp"

namespace gradsync {

/// One optimizer step of one rank. Times are of the rank's clock, absolute.
struct StepRecord {
  std::int64_t epoch = 0;
  std::int64_t step = 0;
  double loss = 0;
  double grad_norm = 0;  ///< before clipping; 0 where clipping is off
  double learning_rate = 0;
  std::string parameter_hash;  ///< 32 hex digits after the update; empty where not taken
  std::int64_t samples = 0;
  std::string sample_hash;  ///< XXH3-128 of the sample indices
  Seconds begin{0};
  Seconds forward_end{0};
  Seconds backward_compute_end{0};  ///< the last hook has run; what follows is exposed waiting
  Seconds backward_end{0};
  Seconds comm_begin{-1};  ///< first bucket launched
  Seconds comm_end{-1};    ///< last bucket's result is there
  Seconds end{0};
};

/// How a rank ended.
enum class RankState {
  kRunning,   ///< has not ended (a dump of a hang, or a rank that was killed)
  kFinished,  ///< ran out of steps and said so
  kFailed,    ///< ended with an error
};
const char* to_string(RankState state) noexcept;

/// A bucket of the reducer, in launch order.
struct BucketSummary {
  std::int64_t index = 0;
  Bytes bytes = 0;
  std::int64_t elements = 0;
  std::vector<std::string> parameters;
};

/// All that one rank knows of its run: what the run directory, the result and the diagnosis are made
/// of. It travels as JSON between processes (see to_json / rank_report_from_json).
struct RankReport {
  int rank = 0;
  RankState state = RankState::kRunning;
  std::optional<ErrorCode> error_code;
  std::string error;  ///< what() of the error that ended the rank
  std::optional<CollectiveRecord> failed_collective;
  Phase phase = Phase::kInit;  ///< where it is, or was when it ended
  Seconds phase_since{0};
  Seconds ended{0};
  std::int64_t steps_completed = 0;
  std::int64_t steps_planned = 0;    ///< what its shard gives it
  std::int64_t samples_planned = 0;  ///< an epoch
  std::int64_t parameter_tensors = 0;
  std::int64_t parameter_count = 0;
  Bytes parameter_bytes = 0;
  bool rebuilt_buckets = false;
  std::vector<BucketSummary> buckets;
  std::string comm_hook = "allreduce";
  std::string final_parameter_hash;  ///< empty where tensors are meta
  std::vector<StepRecord> steps;
  /// Every collective of the run (the flight recorder has only the last ones); empty for ranks
  /// beyond output.detail_ranks.
  std::vector<CollectiveRecord> collectives;
  std::vector<CollectiveRecord> flight;  ///< the flight recorder's ring when the rank ended
  Bytes peak_rss_bytes = 0;              ///< of the rank's process; 0 in the simulator
};

}  // namespace gradsync
