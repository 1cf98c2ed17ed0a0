#pragma once

#include <memory>

#include "gradsync/backends/nccl/nccl_api.hpp"

namespace gradsync {

/// Loads NCCL at run time: GRADSYNC_NCCL_LIBRARY if set, otherwise libnccl.so.2 from the loader's
/// path, otherwise the library found at build time. Throws Error(kBackendUnavailable) if the
/// library is missing or older than 2.18.
std::unique_ptr<NcclApi> open_nccl();

}  // namespace gradsync
