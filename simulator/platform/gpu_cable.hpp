#pragma once

#include <algorithm>
#include <cstdint>

#include "gradsync/testbed/scenario/scenario.hpp"

namespace gradsync {

/// The cable from a GPU to its node's switch. A full mesh stands for a switch whose cables have
/// what a GPU's links to the others in the node have together: its rings lie over all of them.
inline LinkSpec gpu_cable(const ClusterSpec& cluster, std::int64_t ranks) {
  LinkSpec cable = cluster.intra_node;
  if (cluster.node_topology == ClusterSpec::NodeTopology::kFullMesh) {
    const std::int64_t others = std::min(cluster.gpus_per_node, ranks) - 1;
    cable.bandwidth.value *= static_cast<double>(std::max<std::int64_t>(others, 1));
  }
  return cable;
}

}  // namespace gradsync
