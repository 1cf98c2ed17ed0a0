#include "gradsync/testbed/record/exit_status.hpp"

namespace gradsync {

int exit_status(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::kInvalidConfig:
    case ErrorCode::kUsage:
      return 2;
    case ErrorCode::kBackendUnavailable:
      return 3;
    case ErrorCode::kTimeout:
      return 4;
    case ErrorCode::kDesync:
      return 5;
    case ErrorCode::kPeerFailed:
    case ErrorCode::kRankDied:
    case ErrorCode::kMisuse:
    case ErrorCode::kInternal:
      return 6;
  }
  return 6;
}

}  // namespace gradsync
