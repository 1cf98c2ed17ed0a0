#pragma once

#include <string>
#include <vector>

#include "gradsync/ddp/loop_position.hpp"

namespace gradsync {

/// What PyTorch broadcasts at once: 250 MiB.
inline constexpr Bytes kBroadcastBucketBytes = 250 * 1024 * 1024;

/// Makes `tensors` those of rank `root` on every rank, in few large broadcasts: tensors of equal
/// dtype are packed by compute_bucket_assignment_by_size, at most two broadcasts are under way at a
/// time. Returns when all is done. Every rank gives tensors of the same shapes in the same order.
void broadcast_coalesced(ProcessGroup& group, const std::vector<Tensor>& tensors, int root,
                         const CollectiveOptions& options);

}  // namespace gradsync
