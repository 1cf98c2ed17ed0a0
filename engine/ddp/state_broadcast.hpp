#pragma once

#include <string>
#include <vector>

#include "gradsync/ddp/loop_position.hpp"

namespace gradsync {

/// PyTorch's limit for one broadcast, 250 MiB.
inline constexpr Bytes kBroadcastBucketBytes = 250 * 1024 * 1024;

/// Copies the `tensors` of rank `root` to every rank in few large broadcasts:
/// compute_bucket_assignment_by_size packs tensors of equal dtype, and at most two broadcasts are
/// in flight at a time. Returns when all are complete. Every rank passes tensors of the same shapes
/// in the same order.
void broadcast_coalesced(ProcessGroup& group, const std::vector<Tensor>& tensors, int root,
                         const CollectiveOptions& options);

}  // namespace gradsync
