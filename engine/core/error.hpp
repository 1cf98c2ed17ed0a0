#pragma once

#include <stdexcept>
#include <string>

namespace gradsync {

/// The category of an error.
enum class ErrorCode {
  kInvalidConfig,       ///< an input file, or a value in it (ConfigError)
  kUsage,               ///< an invalid option, environment variable or call
  kBackendUnavailable,  ///< a backend that this build or machine does not have
  kTimeout,             ///< a wait that timed out: a hang
  kDesync,              ///< ranks that disagree (sizes, order, parameters, hashes)
  kPeerFailed,          ///< another rank failed first; this error is a consequence
  kRankDied,            ///< a rank exited without shutting down
  kMisuse,              ///< a use of the library that gradsync, or PyTorch, rejects
  kInternal,            ///< anything else
};

/// The word for `code` in reports, e.g. "timeout".
const char* to_string(ErrorCode code) noexcept;

/// Base class of every exception thrown by gradsync. `what()` is a full sentence for a person: it
/// names the rank, step and collective (or the file and JSON pointer) and says what to do.
class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ErrorCode code() const noexcept { return code_; }

 private:
  ErrorCode code_;
};

/// A mistake in an input file. `what()` reads "FILE: POINTER: expected X, found Y. HINT".
class ConfigError : public Error {
 public:
  struct Details {
    std::string file;      ///< path as given by the user
    std::string pointer;   ///< JSON pointer (RFC 6901) to the offending value; "" is the whole file
    std::string expected;  ///< e.g. "a bandwidth such as \"25GBps\""
    std::string found;     ///< the value as JSON text, shortened
    std::string hint;      ///< e.g. "did you mean \"bucket_cap_mb\"?"; may be empty
  };
  explicit ConfigError(Details details);
  const Details& details() const noexcept { return details_; }

 private:
  Details details_;
};

}  // namespace gradsync
