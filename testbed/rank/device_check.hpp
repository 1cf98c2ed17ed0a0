#pragma once

#include <cstdint>

#include "gradsync/comm/process_group.hpp"

namespace gradsync {

/// Compares which device each rank of `group` uses, all on one machine. Throws Error(kMisuse) on
/// every rank where two claim the same, as NCCL does when its communicator is made.
void check_devices(ProcessGroup& group, Device& device, std::int64_t claimed);

}  // namespace gradsync
