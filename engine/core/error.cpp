#include "gradsync/core/error.hpp"

namespace gradsync {
namespace {

std::string describe(const ConfigError::Details& d) {
  std::string text = d.file;
  if (!d.pointer.empty()) text += (text.empty() ? "" : ": ") + d.pointer;
  if (!text.empty()) text += ": ";
  text += "expected " + d.expected;
  if (!d.found.empty()) text += ", found " + d.found;
  if (!d.hint.empty()) text += "; " + d.hint;
  return text;
}

}  // namespace

int exit_status(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::kInvalidScenario:
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

const char* to_string(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::kInvalidScenario:
      return "invalid_scenario";
    case ErrorCode::kUsage:
      return "usage";
    case ErrorCode::kBackendUnavailable:
      return "backend_unavailable";
    case ErrorCode::kTimeout:
      return "timeout";
    case ErrorCode::kDesync:
      return "desync";
    case ErrorCode::kPeerFailed:
      return "peer_failed";
    case ErrorCode::kRankDied:
      return "rank_died";
    case ErrorCode::kMisuse:
      return "misuse";
    case ErrorCode::kInternal:
      return "internal";
  }
  return "internal";
}

ConfigError::ConfigError(Details details)
    : Error(ErrorCode::kInvalidScenario, describe(details)), details_(std::move(details)) {}

}  // namespace gradsync
