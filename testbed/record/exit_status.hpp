#pragma once

#include "gradsync/core/error.hpp"

namespace gradsync {

/// The exit status that the command, or the process of a rank, ends with for an error of this kind:
/// 2 an invalid scenario or command line, 3 no such backend, 4 a hang, 5 a desync, 6 failed.
int exit_status(ErrorCode code) noexcept;

}  // namespace gradsync
