#pragma once

#include <string>

#include "gradsync/testbed/scenario/scenario.hpp"

namespace gradsync {

/// The hop of a ring that sets its pace.
struct Bottleneck {
  std::string link;  ///< "intra_node" or "inter_node", as in the scenario; empty for one rank
  LinkSpec hop;      ///< of the whole way between two neighbours
  Seconds step{0};   ///< of one of the ring's 2(n-1) steps
  double latency_share = 0;  ///< of `step`
};

/// In a ring over the ranks in order, each step of a hop takes its latency plus S/n bytes at its
/// bandwidth, and the slowest hop sets the pace of all. The hops of a cluster are of two kinds:
/// between GPUs of a node, and from a node to the next, which also has a cable of each node's
/// adapter. This names the slower kind; it is an estimate from the cluster's description that does
/// not know what else is on a link.
Bottleneck find_bottleneck(const ClusterSpec& cluster, std::int64_t ranks, Bytes bucket_bytes);

/// "inter_node, 25 GB/s and 12 us a hop: 83% of a ring step is latency"
std::string describe(const Bottleneck& bottleneck);

}  // namespace gradsync
