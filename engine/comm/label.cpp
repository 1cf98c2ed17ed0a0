#include "gradsync/comm/label.hpp"

#include <fmt/format.h>

namespace gradsync {

const char* to_string(Phase phase) noexcept {
  switch (phase) {
    case Phase::kInit:
      return "init";
    case Phase::kData:
      return "data";
    case Phase::kForward:
      return "forward";
    case Phase::kBackward:
      return "backward";
    case Phase::kOptimizer:
      return "optimizer";
    case Phase::kCheck:
      return "check";
    case Phase::kJoin:
      return "join";
    case Phase::kEvaluation:
      return "evaluation";
    case Phase::kCheckpoint:
      return "checkpoint";
    case Phase::kUser:
      return "user";
    case Phase::kShutdown:
      return "shutdown";
  }
  return "unknown";
}

std::string describe(const CollectiveLabel& label) {
  std::string text;
  if (label.step >= 0) {
    text = fmt::format("step {} (epoch {}) {}", label.step, label.epoch, to_string(label.phase));
  } else {
    text = to_string(label.phase);
  }
  if (label.bucket >= 0) text += fmt::format(", bucket {}", label.bucket);
  if (!label.what.empty()) text += fmt::format(" ({})", label.what);
  return text;
}

}  // namespace gradsync
