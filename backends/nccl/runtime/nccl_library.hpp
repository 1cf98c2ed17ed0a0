#pragma once

#include <memory>

#include "gradsync/backends/nccl/nccl_api.hpp"

namespace gradsync {

/// NCCL itself, opened when it is called: GRADSYNC_NCCL_LIBRARY if it is set, else libnccl.so.2
/// where the loader finds it, else the one that was there when this was built. Throws
/// Error(kBackendUnavailable) for a library that is not there or older than 2.18.
std::unique_ptr<NcclApi> open_nccl();

}  // namespace gradsync
