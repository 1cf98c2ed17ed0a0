#pragma once

#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <vector>

#include "gradsync/comm/flight_recorder.hpp"
#include "gradsync/core/error.hpp"
#include "gradsync/ddp/ddp_logging.hpp"

namespace gradsync {

/// One optimizer step of one rank. Times are of the rank's clock, absolute, in the order in which
/// they are listed. A step over several batches (train.accumulate_steps) stands as if it had drawn
/// all of them first, then run all forward passes, then all backward passes: the differences are
/// the sums over its batches.
struct StepRecord {
  std::int64_t epoch = 0;
  std::int64_t step = 0;       ///< optimizer steps before it, over all epochs
  std::optional<double> loss;  ///< mean over this rank's batches; absent where tensors are meta
  std::optional<double> grad_norm;  ///< before clipping; absent without clipping or on meta
  double learning_rate = 0;
  std::string parameter_hash;  ///< 32 hex digits after the update; empty where not taken
  std::optional<double> clip_coefficient;  ///< the factor of clipping; absent as grad_norm
  double loss_scale = 1;
  std::int64_t unscales = 0;        ///< how often its gradients were divided by loss_scale
  double scale_at_clip = 1;         ///< by which they were still multiplied when they were clipped
  std::optional<double> clip_norm;  ///< by which the clip went where that was not grad_norm
  std::int64_t batches = 1;         ///< micro steps
  std::int64_t reductions = 1;      ///< of them, those whose gradients were reduced
  bool last_batch_reduced = true;   ///< its gradients hold those of all batches
  std::int64_t samples = 0;         ///< of all its batches; the last of an epoch may be smaller
  std::string sample_hash;          ///< XXH3-128 of the sample indices (int64, little endian)
  Seconds begin{0};
  Seconds data_end{0};  ///< the batch is drawn, the gradients are cleared
  Seconds forward_end{0};
  Seconds backward_compute_end{0};  ///< the last hook has run; what follows is exposed waiting
  Seconds backward_end{0};          ///< every bucket is reduced and copied back
  Seconds clip_end{0};
  Seconds optimizer_end{
      0};          ///< the step of the training; `end` adds what the testbed does for itself
  Seconds end{0};  ///< the parameters are hashed and compared
  Seconds comm_begin{-1};  ///< first bucket launched; negative where nothing was
  Seconds comm_end{-1};    ///< last bucket's result is there
  /// Lower 32 bits of XXH3-64 of each tensor after the step, in the order of
  /// RankReport::tensors; empty where none was taken, on meta, or long ago.
  std::vector<std::uint32_t> checksums;
};

/// When a rank came to a phase.
struct PhaseChange {
  Phase phase = Phase::kInit;
  std::int64_t step = 0;
  Seconds since{0};
};

enum class RankEventKind {
  kSkipped,   ///< the loop went on with the next batch; the step was not taken
  kLeftLoop,  ///< the loop was left before its end
  kRaised,    ///< an exception came to the program's handler
};
const char* to_string(RankEventKind kind) noexcept;

/// A line of a rank's log.
struct RankEvent {
  RankEventKind kind = RankEventKind::kSkipped;
  Phase phase = Phase::kInit;
  std::int64_t step = 0;
  std::string what;
};

/// The samples that a rank drew in an epoch, in order.
struct EpochSamples {
  std::int64_t epoch = 0;
  std::vector<std::int64_t> indices;
  bool complete = true;  ///< false: there were more than are kept
};

/// A known fault of the environment.
struct WorldCondition {
  std::string what;  ///< "the cables of node 1 are down since 20ms"
  Seconds begin{0};
  std::optional<Seconds> end;  ///< absent: it was so when the run ended
  bool delivers = true;        ///< slower than it should; false: nothing passes as long as it lasts
};

/// How a rank ended.
enum class RankState {
  kRunning,   ///< has not ended (a dump of a hang), or its process went without saying how
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

/// All that one rank knows of its run: what the run directory, the result and the diagnosis are
/// made of. It travels as JSON between processes (engine/train/rank_report_json.hpp).
struct RankReport {
  int rank = 0;
  int world_size = 0;  ///< ranks in the run
  RankState state = RankState::kRunning;
  /// The error that ended the rank. A rank that finished may have one too: what it met while it
  /// waited for the others in shutdown.
  std::optional<ErrorCode> error_code;
  std::string error;  ///< what() of it
  std::optional<CollectiveRecord> failed_collective;
  /// How the rank's process ended, from whoever started it; both absent in the simulator and where
  /// nobody looked. A launcher that ends a rank because another one failed first says so with
  /// error_code = kPeerFailed.
  std::optional<int> exit_code;
  std::optional<int> exit_signal;
  Phase phase = Phase::kInit;  ///< where it is, or was when it ended
  Seconds phase_since{0};
  Seconds ended{0};  ///< when it finished, failed or was stopped
  std::int64_t steps_completed = 0;
  std::int64_t steps_planned = 0;    ///< of the run: all epochs, cut by max_steps
  std::int64_t samples_planned = 0;  ///< of its shard, an epoch
  std::int64_t dataset_samples = 0;  ///< of all ranks' data
  std::int64_t parameter_tensors = 0;
  std::int64_t parameter_count = 0;
  Bytes parameter_bytes = 0;
  bool rebuilt_buckets = false;
  std::vector<BucketSummary> buckets;
  std::string comm_hook = "allreduce";
  std::vector<std::string> warnings;  ///< DDP's, each once
  DdpLoggingData ddp_logging;         ///< get_ddp_logging_data() after the last step
  std::string final_parameter_hash;   ///< empty where tensors are meta
  std::vector<StepRecord> steps;      ///< completed ones
  // What tells a rank's turns in the loop from the others'. The lists are bounded (ReportKeeper).
  std::int64_t batches_drawn = 0;
  std::vector<PhaseChange> phases;  ///< the last ones
  std::vector<RankEvent> events;    ///< the last ones
  std::vector<EpochSamples> epochs;
  std::string config_hash;      ///< of everything in the scenario that has to be equal on all ranks
  std::int64_t first_step = 0;  ///< with which it started
  std::optional<std::int64_t> device_claimed;  ///< where devices are given out
  /// The parameters and buffers, as DDP was shown them, in order: "name dtype [shape]".
  std::vector<std::string> tensors;
  std::int64_t buffer_count = 0;  ///< the last ones of `tensors`
  /// The rank has failed and is tidying up since then; absent: it has not, or has done so. It is
  /// what is left of a rank whose clean-up did not end.
  std::optional<Seconds> clean_up_since;
  std::vector<int> unreachable;       ///< ranks to which it could not connect
  std::vector<WorldCondition> world;  ///< in the order of the scenario
  /// Every collective of the run that ended, in the order of completion (the flight recorder has
  /// only the last ones); empty for ranks from output.detail_ranks on.
  std::vector<CollectiveRecord> collectives;
  std::vector<CollectiveRecord> flight;  ///< the flight recorder's ring when the rank ended
  Bytes peak_rss_bytes = 0;              ///< of the rank's process; 0 in the simulator
};

/// Enters an exception that ended the rank: the state, and the error, unless the rank has entered
/// it itself, with more detail.
void note_error(RankReport& report, const std::exception& error);

/// All that a report holds of the rank's collectives, each once, in the order of issue: those that
/// the flight recorder still has, and those that were collected when they ended. The pointers are
/// into the report.
std::vector<const CollectiveRecord*> all_collectives(const RankReport& report);

}  // namespace gradsync
