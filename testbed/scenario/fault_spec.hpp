#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gradsync/comm/flight_recorder.hpp"
#include "gradsync/core/units.hpp"

namespace gradsync {

/// What can be made to go wrong: the primitives of which the known ways in which data-parallel jobs
/// hang or diverge are composed. docs/scenarios.md describes each under its name in the file.
enum class FaultKind {
  // The loop of a rank takes another turn.
  kSkip,
  kLeaveLoop,
  kThrow,
  kExit,
  kKill,
  kDelay,
  kStall,
  kSlow,
  kResume,
  // Communication beside the gradients.
  kCollective,
  kEvaluate,
  kGroup,
  // Model and gradients.
  kUnused,
  kOrder,
  kShape,
  kRename,
  kReplace,
  kAdd,
  kReadyTwice,
  kNan,
  // What an update is made of.
  kLossScale,
  kClip,
  kNormReducedAgain,
  kClipBeforeUnscale,
  kClipInsideAccumulation,
  kLearningRate,
  kNoSync,
  kSampler,
  // The world.
  kRendezvous,
  kDevice,
  kSlots,
  kLink,
};

/// Where in the loop an event happens. Events of one point happen in the order of the scenario.
enum class FaultPoint {
  kInit,         ///< before the model is built
  kData,         ///< while a batch is drawn
  kForward,      ///< before the forward pass
  kBackward,     ///< between forward and backward
  kOptimizer,    ///< before the update
  kEvaluation,   ///< after the step, as an evaluation
  kCheckpoint,   ///< after the step, as a checkpoint
  kStepEnd,      ///< after the step
  kEpochEnd,     ///< after the last step of an epoch
  kTrainingEnd,  ///< after the last epoch
  kCleanUp,      ///< when the rank has failed, before it goes
};

/// One fault. Each kind uses some of the members (engine/train/scenario_table_faults.cpp says
/// which); the others keep their defaults.
struct FaultSpec {
  FaultKind kind = FaultKind::kSkip;
  std::vector<std::int64_t> ranks;  ///< empty: all ranks
  std::int64_t step = 0;            ///< the first one
  std::int64_t steps = 1;           ///< how many; 0: to the end
  std::optional<std::int64_t> micro_step;
  FaultPoint at = FaultPoint::kStepEnd;

  Seconds duration{0};
  bool wrong_address = false;
  std::string message = "injected failure";
  bool caught = false;
  bool handler = false;
  std::int64_t code = 1;
  std::string signal = "SIGKILL";

  OpType op = OpType::kBarrier;
  std::int64_t elements = 1;
  std::string dtype = "float32";
  std::int64_t root = 0;
  ReduceOp reduce_op = ReduceOp::kSum;
  std::string group;  ///< empty: the default group
  std::string name;
  std::string site;
  std::vector<std::int64_t> members;
  bool wait = true;

  std::vector<std::string> parameters;
  std::vector<std::int64_t> shape;
  bool through_ddp = true;

  double value = 1;
  bool sync = false;
  std::optional<std::uint64_t> seed;
  std::optional<bool> set_epoch;
  std::optional<std::int64_t> shard_of;
  std::int64_t to_step = 0;
  std::int64_t device = 0;
  std::int64_t slots = 1;
  bool newest_first = false;
  std::int64_t node = 0;
  std::string link;  ///< by name; empty: the cables of `node`
  double factor = 1;
  Seconds lasts{0};  ///< 0: to the end of the run
  double loss_percent = 0;

  bool operator==(const FaultSpec&) const = default;
};

const char* to_string(FaultKind kind) noexcept;    ///< as in the scenario: "skip"
const char* to_string(FaultPoint point) noexcept;  ///< "step_end"

/// Whether `rank` has the fault.
bool concerns(const FaultSpec& fault, int rank) noexcept;
/// Whether the fault is there in optimizer step `step`.
bool covers(const FaultSpec& fault, std::int64_t step) noexcept;

}  // namespace gradsync
