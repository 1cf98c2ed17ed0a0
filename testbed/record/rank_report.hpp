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

/// One optimizer step of one rank. Times are absolute on the rank's clock, in the order in which
/// they are listed. A step over several batches (train.accumulate_steps) is recorded as if it had
/// first drawn all batches, then run all forward passes, then all backward passes: each difference
/// is the sum over its batches.
struct StepRecord {
  std::int64_t epoch = 0;
  std::int64_t step = 0;            ///< optimizer steps before it, over all epochs
  std::optional<double> loss;       ///< mean over this rank's batches; absent on meta tensors
  std::optional<double> grad_norm;  ///< before clipping; absent without clipping or on meta
  double learning_rate = 0;
  std::string parameter_hash;  ///< 32 hex digits, after the update; empty if not computed
  std::optional<double> clip_coefficient;  ///< absent like grad_norm
  double loss_scale = 1;
  std::int64_t unscales = 0;        ///< number of divisions of its gradients by loss_scale
  double scale_at_clip = 1;         ///< remaining scale of the gradients when clipped
  std::optional<double> clip_norm;  ///< norm used for clipping, if not grad_norm
  std::int64_t batches = 1;         ///< micro steps
  std::int64_t reductions = 1;      ///< micro steps whose gradients were reduced
  bool last_batch_reduced = true;   ///< its gradients hold those of all batches
  std::int64_t samples = 0;         ///< in all its batches; the last of an epoch may be smaller
  std::string sample_hash;          ///< XXH3-128 of the sample indices (int64, little endian)
  Seconds begin{0};
  Seconds data_end{0};  ///< batch drawn, gradients cleared
  Seconds forward_end{0};
  Seconds backward_compute_end{0};  ///< last hook has run; later waits are exposed communication
  Seconds backward_end{0};          ///< every bucket is reduced and copied back
  Seconds clip_end{0};
  Seconds optimizer_end{0};  ///< end of the training step, before the testbed's own work
  Seconds end{0};            ///< parameters are hashed and compared
  Seconds comm_begin{-1};    ///< first bucket launched; negative if none was
  Seconds comm_end{-1};      ///< result of the last bucket is available
  /// Lower 32 bits of XXH3-64 of each tensor after the step, in the order of RankReport::tensors.
  /// Empty on meta tensors, if not computed, or if the step is too old.
  std::vector<std::uint32_t> checksums;
};

/// The time at which a rank entered a phase.
struct PhaseChange {
  Phase phase = Phase::kInit;
  std::int64_t step = 0;
  Seconds since{0};
};

enum class RankEventKind {
  kSkipped,   ///< loop continued with the next batch; step not taken
  kLeftLoop,  ///< loop left before its end
  kRaised,    ///< exception reached the program's handler
};
const char* to_string(RankEventKind kind) noexcept;

/// An entry of a rank's log.
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
  bool complete = true;  ///< false if there were too many to keep
};

/// A known fault of the environment.
struct WorldCondition {
  std::string what;  ///< "the cables of node 1 are down since 20ms"
  Seconds begin{0};
  std::optional<Seconds> end;  ///< absent: it lasted until the end of the run
  bool delivers = true;  ///< true: slower than it should be; false: nothing passes while it lasts
};

/// How a rank ended.
enum class RankState {
  kRunning,   ///< not ended (dump of a hang), or its process vanished
  kFinished,  ///< completed all its steps and reported it
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

/// Everything that one rank knows about its run: the source of the run directory, the result and
/// the diagnosis. Passed between processes as JSON (testbed/record/rank_report_json.hpp).
struct RankReport {
  int rank = 0;
  int world_size = 0;  ///< ranks in the run
  RankState state = RankState::kRunning;
  /// The error that ended the rank. A finished rank may have one too, from waiting for the others
  /// in shutdown.
  std::optional<ErrorCode> error_code;
  std::string error;  ///< what() of it
  std::optional<CollectiveRecord> failed_collective;
  /// How the rank's process ended, set by whoever started it; both absent in the simulator, or if
  /// nobody observed it. If a launcher ends a rank because another one failed first, it sets
  /// error_code = kPeerFailed.
  std::optional<int> exit_code;
  std::optional<int> exit_signal;
  Phase phase = Phase::kInit;  ///< current phase, or the phase in which it ended
  Seconds phase_since{0};
  Seconds ended{0};  ///< when it finished, failed or was stopped
  std::int64_t steps_completed = 0;
  std::int64_t steps_planned = 0;    ///< in the run: all epochs, limited by max_steps
  std::int64_t samples_planned = 0;  ///< of its shard, per epoch
  std::int64_t dataset_samples = 0;  ///< over all ranks
  std::int64_t parameter_tensors = 0;
  std::int64_t parameter_count = 0;
  Bytes parameter_bytes = 0;
  bool rebuilt_buckets = false;
  std::vector<BucketSummary> buckets;
  std::string comm_hook = "allreduce";
  std::vector<std::string> warnings;  ///< DDP's, without repetition
  DdpLoggingData ddp_logging;         ///< get_ddp_logging_data() after the last step
  std::string final_parameter_hash;   ///< empty on meta tensors
  std::vector<StepRecord> steps;      ///< completed steps
  // Distinguishes the rank's loop from those of the other ranks. The lists are bounded
  // (ReportKeeper).
  std::int64_t batches_drawn = 0;
  std::vector<PhaseChange> phases;  ///< most recent
  std::vector<RankEvent> events;    ///< most recent
  std::vector<EpochSamples> epochs;
  std::string config_hash;      ///< over all settings that must be equal on all ranks
  std::int64_t first_step = 0;  ///< the first step of the run
  std::optional<std::int64_t> device_claimed;  ///< if devices are assigned
  /// The parameters and buffers passed to DDP, in order: "name dtype [shape]".
  std::vector<std::string> tensors;
  std::int64_t buffer_count = 0;  ///< the last entries of `tensors`
  /// Since when the rank has been cleaning up after a failure; absent if it has not failed or has
  /// finished its clean-up. Remains set if the clean-up did not end.
  std::optional<Seconds> clean_up_since;
  std::vector<int> unreachable;       ///< ranks it could not connect to
  std::vector<WorldCondition> world;  ///< in scenario order
  /// Every completed collective of the run, in completion order (the flight recorder holds only the
  /// last ones); empty for ranks >= output.detail_ranks.
  std::vector<CollectiveRecord> collectives;
  std::vector<CollectiveRecord> flight;  ///< the flight recorder's ring when the rank ended
  Bytes peak_rss_bytes = 0;              ///< of the rank's process; 0 in the simulator
};

/// Records an exception that ended the rank: the state, and the error unless the rank has already
/// recorded a more detailed one.
void note_error(RankReport& report, const std::exception& error);

/// All collectives in the report without duplicates, in issue order: those in the flight recorder
/// and those collected on completion. The pointers point into the report.
std::vector<const CollectiveRecord*> all_collectives(const RankReport& report);

}  // namespace gradsync
