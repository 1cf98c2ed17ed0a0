#include "gradsync/testbed/scenario/fault_spec.hpp"

#include <algorithm>

namespace gradsync {

const char* to_string(FaultKind kind) noexcept {
  switch (kind) {
    case FaultKind::kSkip:
      return "skip";
    case FaultKind::kLeaveLoop:
      return "leave_loop";
    case FaultKind::kThrow:
      return "throw";
    case FaultKind::kExit:
      return "exit";
    case FaultKind::kKill:
      return "kill";
    case FaultKind::kDelay:
      return "delay";
    case FaultKind::kStall:
      return "stall";
    case FaultKind::kSlow:
      return "slow";
    case FaultKind::kResume:
      return "resume";
    case FaultKind::kCollective:
      return "collective";
    case FaultKind::kEvaluate:
      return "evaluate";
    case FaultKind::kGroup:
      return "group";
    case FaultKind::kUnused:
      return "unused";
    case FaultKind::kOrder:
      return "order";
    case FaultKind::kShape:
      return "shape";
    case FaultKind::kRename:
      return "rename";
    case FaultKind::kReplace:
      return "replace";
    case FaultKind::kAdd:
      return "add";
    case FaultKind::kReadyTwice:
      return "ready_twice";
    case FaultKind::kNan:
      return "nan";
    case FaultKind::kLossScale:
      return "loss_scale";
    case FaultKind::kClip:
      return "clip";
    case FaultKind::kNormReducedAgain:
      return "norm_reduced_again";
    case FaultKind::kClipBeforeUnscale:
      return "clip_before_unscale";
    case FaultKind::kClipInsideAccumulation:
      return "clip_inside_accumulation";
    case FaultKind::kLearningRate:
      return "learning_rate";
    case FaultKind::kNoSync:
      return "no_sync";
    case FaultKind::kSampler:
      return "sampler";
    case FaultKind::kRendezvous:
      return "rendezvous";
    case FaultKind::kDevice:
      return "device";
    case FaultKind::kSlots:
      return "slots";
    case FaultKind::kLink:
      return "link";
  }
  return "unknown";
}

const char* to_string(FaultPoint point) noexcept {
  switch (point) {
    case FaultPoint::kInit:
      return "init";
    case FaultPoint::kData:
      return "data";
    case FaultPoint::kForward:
      return "forward";
    case FaultPoint::kBackward:
      return "backward";
    case FaultPoint::kOptimizer:
      return "optimizer";
    case FaultPoint::kEvaluation:
      return "evaluation";
    case FaultPoint::kCheckpoint:
      return "checkpoint";
    case FaultPoint::kStepEnd:
      return "step_end";
    case FaultPoint::kEpochEnd:
      return "epoch_end";
    case FaultPoint::kTrainingEnd:
      return "training_end";
    case FaultPoint::kCleanUp:
      return "clean_up";
  }
  return "unknown";
}

bool concerns(const FaultSpec& fault, int rank) noexcept {
  return fault.ranks.empty() ||
         std::find(fault.ranks.begin(), fault.ranks.end(), rank) != fault.ranks.end();
}

bool covers(const FaultSpec& fault, std::int64_t step) noexcept {
  return step >= fault.step && (fault.steps == 0 || step < fault.step + fault.steps);
}

}  // namespace gradsync
