#pragma once

#include "tools/command/backend_registry.hpp"

namespace gradsync {

// One function a backend, each in a file of its own. The build defines GRADSYNC_HAVE_X where it has
// the libraries, and GRADSYNC_X_WHY_NOT, a sentence, where it does not.
Backend gloo_backend();
Backend nccl_backend();
Backend sim_backend();

}  // namespace gradsync
