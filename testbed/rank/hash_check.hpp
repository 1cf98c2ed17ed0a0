#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "gradsync/autograd/parameter_hash.hpp"
#include "gradsync/comm/process_group.hpp"

namespace gradsync {

/// Compares this rank's hash with those of all others (an allgather of 16 bytes on `device`).
/// Throws Error(kDesync) on every rank when they differ, naming the step and the odd ranks.
void check_equal_hashes(ProcessGroup& group, Device& device, const Hash128& hash,
                        std::int64_t epoch, std::int64_t step);

/// "ranks 0, 2-3 have 0123..., rank 1 has 4567...", the largest group first; empty if all are
/// equal.
std::string describe_difference(std::span<const std::string> hashes);

}  // namespace gradsync
