#include "gradsync/testbed/scenario/fault_spec.hpp"

#include <algorithm>

namespace gradsync {

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

const char* name_of(const FaultSpec& fault) noexcept {
  return std::visit([](const auto& kind) { return kind.kName; }, fault.kind);
}

bool concerns(const FaultSpec& fault, int rank) noexcept {
  return fault.ranks.empty() ||
         std::find(fault.ranks.begin(), fault.ranks.end(), rank) != fault.ranks.end();
}

}  // namespace gradsync
