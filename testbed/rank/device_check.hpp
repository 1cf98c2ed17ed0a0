#pragma once

#include <cstdint>

#include "gradsync/comm/process_group.hpp"

namespace gradsync {

/// Compares the devices used by the ranks of `group`, which all run on one machine. If two ranks
/// claim the same device, throws Error(kMisuse) on every rank, as NCCL does when it creates its
/// communicator.
void check_devices(ProcessGroup& group, Device& device, std::int64_t claimed);

}  // namespace gradsync
