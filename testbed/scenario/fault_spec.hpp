#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "gradsync/comm/flight_recorder.hpp"
#include "gradsync/core/units.hpp"

namespace gradsync {

/// The point of the loop at which an event happens. Events at the same point happen in scenario
/// order.
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
  kCleanUp,      ///< when the rank has failed, before it exits
};
const char* to_string(FaultPoint point) noexcept;  ///< "step_end"

// The injectable faults: primitives that compose the known ways in which data-parallel jobs hang or
// diverge. One struct per kind; docs/scenarios.md describes each one and its members under `kName`.
// Common members:
//
// at         the fault is an event, and happens at this point of the loop
//   step       the first optimizer step with the fault; unset: always active
//   steps      the number of steps; 0: to the end; unset with `step`: one
//   micro_step the batch within a step; unset: every batch
//   parameters patterns of names; empty: all

// ---- A rank's loop takes a different turn.

struct SkipFault {
  static constexpr const char* kName = "skip";
  std::int64_t step = 0;
  std::int64_t steps = 1;
  FaultPoint at = FaultPoint::kBackward;
  std::string message = "injected failure";
  bool operator==(const SkipFault&) const = default;
};

struct LeaveLoopFault {
  static constexpr const char* kName = "leave_loop";
  std::int64_t step = 0;  ///< the rank leaves before this step
  std::string message = "injected failure";
  bool operator==(const LeaveLoopFault&) const = default;
};

struct ThrowFault {
  static constexpr const char* kName = "throw";
  std::int64_t step = 0;
  FaultPoint at = FaultPoint::kForward;
  std::string message = "injected failure";
  bool caught = false;
  bool handler = false;
  bool operator==(const ThrowFault&) const = default;
};

struct ExitFault {
  static constexpr const char* kName = "exit";
  std::int64_t step = 0;
  FaultPoint at = FaultPoint::kForward;
  std::int64_t code = 1;
  bool operator==(const ExitFault&) const = default;
};

struct KillFault {
  static constexpr const char* kName = "kill";
  std::int64_t step = 0;
  FaultPoint at = FaultPoint::kForward;
  std::string signal = "SIGKILL";
  bool operator==(const KillFault&) const = default;
};

struct DelayFault {
  static constexpr const char* kName = "delay";
  std::int64_t step = 0;
  std::int64_t steps = 1;
  FaultPoint at = FaultPoint::kForward;
  Seconds duration{0};
  bool operator==(const DelayFault&) const = default;
};

struct StallFault {
  static constexpr const char* kName = "stall";
  std::int64_t step = 0;
  FaultPoint at = FaultPoint::kData;
  bool operator==(const StallFault&) const = default;
};

struct SlowFault {
  static constexpr const char* kName = "slow";
  double factor = 1;
  bool operator==(const SlowFault&) const = default;
};

struct ResumeFault {
  static constexpr const char* kName = "resume";
  std::int64_t to_step = 0;
  bool operator==(const ResumeFault&) const = default;
};

// ---- Communication besides the gradients.

struct CollectiveFault {
  static constexpr const char* kName = "collective";
  std::int64_t step = 0;
  std::int64_t steps = 1;
  FaultPoint at = FaultPoint::kStepEnd;
  OpType op = OpType::kBarrier;
  std::int64_t elements = 1;
  std::string dtype = "float32";
  std::int64_t root = 0;
  std::int64_t peer = 0;  ///< the receiver of a send, the sender of a recv
  ReduceOp reduce_op = ReduceOp::kSum;
  std::string group;  ///< empty: the default group
  std::string name;
  std::string site;
  bool wait = true;
  bool operator==(const CollectiveFault&) const = default;
};

struct EvaluateFault {
  static constexpr const char* kName = "evaluate";
  std::int64_t step = 0;
  std::int64_t steps = 1;
  FaultPoint at = FaultPoint::kEvaluation;  ///< the only allowed point
  bool through_ddp = true;
  bool operator==(const EvaluateFault&) const = default;
};

struct GroupFault {
  static constexpr const char* kName = "group";
  FaultPoint at = FaultPoint::kInit;  ///< the only allowed point
  std::string name;
  std::vector<std::int64_t> members;
  bool operator==(const GroupFault&) const = default;
};

// ---- Model and gradients.

struct UnusedFault {
  static constexpr const char* kName = "unused";
  std::int64_t step = 0;
  std::int64_t steps = 1;
  std::vector<std::string> parameters;
  bool operator==(const UnusedFault&) const = default;
};

struct OrderFault {
  static constexpr const char* kName = "order";
  std::vector<std::string> parameters;
  bool operator==(const OrderFault&) const = default;
};

struct ShapeFault {
  static constexpr const char* kName = "shape";
  std::vector<std::string> parameters;
  std::vector<std::int64_t> shape;
  bool operator==(const ShapeFault&) const = default;
};

struct RenameFault {
  static constexpr const char* kName = "rename";
  std::string name;  ///< prefix for the names of all parameters
  bool operator==(const RenameFault&) const = default;
};

struct ReplaceFault {
  static constexpr const char* kName = "replace";
  std::vector<std::string> parameters;
  bool operator==(const ReplaceFault&) const = default;
};

struct AddFault {
  static constexpr const char* kName = "add";
  std::vector<std::string> parameters;  ///< names, not patterns
  std::vector<std::int64_t> shape;
  bool operator==(const AddFault&) const = default;
};

struct ReadyTwiceFault {
  static constexpr const char* kName = "ready_twice";
  std::int64_t step = 0;
  std::optional<std::int64_t> micro_step;
  std::vector<std::string> parameters;
  bool operator==(const ReadyTwiceFault&) const = default;
};

struct NanFault {
  static constexpr const char* kName = "nan";
  std::int64_t step = 0;
  std::int64_t steps = 1;
  bool operator==(const NanFault&) const = default;
};

// ---- The inputs of an update.

struct LossScaleFault {
  static constexpr const char* kName = "loss_scale";
  std::int64_t step = 0;
  std::int64_t steps = 0;
  double value = 1;
  bool operator==(const LossScaleFault&) const = default;
};

struct ClipFault {
  static constexpr const char* kName = "clip";
  std::int64_t step = 0;
  std::int64_t steps = 0;
  double value = 1;
  bool operator==(const ClipFault&) const = default;
};

struct NormReducedAgainFault {
  static constexpr const char* kName = "norm_reduced_again";
  std::int64_t step = 0;
  std::int64_t steps = 0;
  bool operator==(const NormReducedAgainFault&) const = default;
};

struct ClipBeforeUnscaleFault {
  static constexpr const char* kName = "clip_before_unscale";
  std::int64_t step = 0;
  std::int64_t steps = 0;
  bool operator==(const ClipBeforeUnscaleFault&) const = default;
};

struct ClipInsideAccumulationFault {
  static constexpr const char* kName = "clip_inside_accumulation";
  std::int64_t step = 0;
  std::int64_t steps = 0;
  bool operator==(const ClipInsideAccumulationFault&) const = default;
};

struct LearningRateFault {
  static constexpr const char* kName = "learning_rate";
  std::int64_t step = 0;
  std::int64_t steps = 0;
  double value = 1;
  bool operator==(const LearningRateFault&) const = default;
};

struct NoSyncFault {
  static constexpr const char* kName = "no_sync";
  std::int64_t step = 0;
  std::int64_t steps = 1;
  std::optional<std::int64_t> micro_step;
  bool sync = false;
  bool operator==(const NoSyncFault&) const = default;
};

struct SamplerFault {
  static constexpr const char* kName = "sampler";
  std::optional<std::uint64_t> seed;
  std::optional<bool> set_epoch;
  std::optional<std::int64_t> shard_of;
  bool operator==(const SamplerFault&) const = default;
};

// ---- The hardware and network of a rank.

struct RendezvousFault {
  static constexpr const char* kName = "rendezvous";
  Seconds duration{0};  ///< delay; 0: never arrives, unless it has a wrong address
  bool wrong_address = false;
  bool operator==(const RendezvousFault&) const = default;
};

struct DeviceFault {
  static constexpr const char* kName = "device";
  std::int64_t device = 0;
  bool operator==(const DeviceFault&) const = default;
};

struct SlotsFault {
  static constexpr const char* kName = "slots";
  std::int64_t slots = 1;
  bool newest_first = false;
  bool operator==(const SlotsFault&) const = default;
};

struct LinkFault {
  static constexpr const char* kName = "link";
  Seconds duration{0};  ///< from the start of the run to the start of the fault
  double factor = 1;    ///< of the bandwidth
  std::int64_t node = 0;
  std::string link;  ///< by name; empty: the cables of `node`
  Seconds lasts{0};  ///< 0: to the end of the run
  double loss_percent = 0;
  bool operator==(const LinkFault&) const = default;
};

using FaultKind =
    std::variant<SkipFault, LeaveLoopFault, ThrowFault, ExitFault, KillFault, DelayFault,
                 StallFault, SlowFault, ResumeFault, CollectiveFault, EvaluateFault, GroupFault,
                 UnusedFault, OrderFault, ShapeFault, RenameFault, ReplaceFault, AddFault,
                 ReadyTwiceFault, NanFault, LossScaleFault, ClipFault, NormReducedAgainFault,
                 ClipBeforeUnscaleFault, ClipInsideAccumulationFault, LearningRateFault,
                 NoSyncFault, SamplerFault, RendezvousFault, DeviceFault, SlotsFault, LinkFault>;

/// One fault of a scenario, on some or all ranks.
struct FaultSpec {
  std::vector<std::int64_t> ranks;  ///< empty: all ranks
  FaultKind kind;

  /// The fault if it is of kind `Kind`, otherwise null.
  template <class Kind>
  const Kind* as() const noexcept {
    return std::get_if<Kind>(&kind);
  }
  template <class Kind>
  Kind* as() noexcept {
    return std::get_if<Kind>(&kind);
  }

  bool operator==(const FaultSpec&) const = default;
};

/// As in the scenario: "skip".
const char* name_of(const FaultSpec& fault) noexcept;
/// Whether `fault` applies to `rank`.
bool concerns(const FaultSpec& fault, int rank) noexcept;

/// Whether a fault is active in optimizer step `step`.
template <class Kind>
bool covers(const Kind& kind, std::int64_t step) noexcept {
  if constexpr (requires { kind.steps; }) {
    return step >= kind.step && (kind.steps == 0 || step < kind.step + kind.steps);
  } else if constexpr (requires { kind.step; }) {
    return step == kind.step;
  } else {
    return true;
  }
}

/// A kind that happens at a point of the loop.
template <class Kind>
concept FaultEvent = requires(const Kind& kind) {
  kind.at;
};

}  // namespace gradsync
