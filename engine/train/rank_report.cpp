#include "engine/train/rank_report.hpp"

namespace gradsync {

const char* to_string(RankState state) noexcept {
  switch (state) {
    case RankState::kRunning:
      return "running";
    case RankState::kFinished:
      return "finished";
    case RankState::kFailed:
      return "failed";
  }
  return "unknown";
}

}  // namespace gradsync
