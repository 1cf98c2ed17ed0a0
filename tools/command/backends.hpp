#pragma once

#include "tools/command/backend_registry.hpp"

namespace gradsync {

// One function per backend, each in its own file. The build defines GRADSYNC_HAVE_X if it has the
// libraries, otherwise GRADSYNC_X_WHY_NOT, a sentence.
Backend gloo_backend();
Backend nccl_backend();
Backend sim_backend();

}  // namespace gradsync
