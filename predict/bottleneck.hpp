#pragma once

#include <string>

#include "gradsync/testbed/scenario/scenario.hpp"

namespace gradsync {

/// The hop that limits the speed of a ring.
struct Bottleneck {
  std::string link;  ///< "intra_node" or "inter_node", as in the scenario; empty for one rank
  LinkSpec hop;      ///< the complete route between two neighbors
  Seconds step{0};   ///< one of the ring's 2(n-1) steps
  double latency_share = 0;  ///< fraction of `step`
};

/// In a ring over the ranks in order, each step of a hop takes its latency plus S/n bytes at its
/// bandwidth, and the slowest hop limits all. A cluster has two kinds of hops: between GPUs of a
/// node, and between nodes, which also crosses the cable of each node's adapter. Returns the slower
/// kind. This is an estimate from the cluster description that ignores other load on the links.
Bottleneck find_bottleneck(const ClusterSpec& cluster, std::int64_t ranks, Bytes bucket_bytes);

/// "inter_node, 25 GB/s and 12 us a hop: 83% of a ring step is latency"
std::string describe(const Bottleneck& bottleneck);

}  // namespace gradsync
