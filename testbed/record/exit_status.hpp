#pragma once

#include "gradsync/core/error.hpp"

namespace gradsync {

/// The exit status of the command, or of a rank's process, for an error: 2 invalid scenario or
/// command line, 3 backend unavailable, 4 hang, 5 desync, 6 failed.
int exit_status(ErrorCode code) noexcept;

}  // namespace gradsync
