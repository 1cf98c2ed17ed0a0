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

const char* to_string(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::kInvalidConfig:
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
    : Error(ErrorCode::kInvalidConfig, describe(details)), details_(std::move(details)) {}

}  // namespace gradsync
