#pragma once

#include <stdexcept>
#include <string>

namespace gradsync {

/// What kind of thing went wrong. The command turns it into an exit status (see `exit_status`).
enum class ErrorCode {
  kInvalidScenario,     ///< the scenario or a file that it names: exit 2
  kUsage,               ///< the command line: exit 2
  kBackendUnavailable,  ///< a backend that this build or machine does not have: exit 3
  kTimeout,             ///< a wait that reached its deadline: a hang, exit 4
  kDesync,              ///< ranks that disagree (sizes, order, parameters, hashes): exit 5
  kPeerFailed,          ///< another rank failed first; this error is a consequence: exit 6
  kRankDied,            ///< a rank ended without saying goodbye: exit 6
  kMisuse,              ///< DDP used in a way that PyTorch's DDP refuses: exit 6
  kInternal,            ///< anything else: exit 6
};

/// The exit status that the command ends with for an error of this kind.
int exit_status(ErrorCode code) noexcept;

/// The word for `code` in result.json, e.g. "timeout".
const char* to_string(ErrorCode code) noexcept;

/// Root of every exception that gradsync throws. `what()` is a full sentence for a person: it names
/// the rank, step and collective (or the file and JSON pointer) and says what to do.
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
    std::string file;      ///< as the user gave it
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
