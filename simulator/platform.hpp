#pragma once

#include <vector>

#include "engine/train/scenario.hpp"
#include "simulator/sim_engine.hpp"

namespace gradsync {

/// Throws ConfigError with the pointer of the offending value when `ranks` ranks do not fit on
/// `cluster`, or the fat tree's description does not make a tree of its nodes.
void check_cluster(const ClusterSpec& cluster, int ranks);

/// The cluster as SimGrid sees it, and where each rank lives.
///
///     rank --[intra_node cable]-- node switch --[inter_node cable]-- fabric (one switch or a fat
///     tree)
///
/// Every cable is full duplex: its bandwidth and latency hold for each direction. Switches add
/// nothing. So a message between GPUs of one node has latency 2 * intra, and one between nodes
/// 2 * intra + 2 * inter on a star; on a fat tree every cable between switches adds inter again.
/// Rank r is GPU r % gpus_per_node of node r / gpus_per_node; only nodes that have ranks are built.
class Platform {
 public:
  /// Builds it in `engine`, before the first actor. As `check_cluster`.
  Platform(SimEngine& engine, const ClusterSpec& cluster, int ranks);

  simgrid_compat::s4u::Host* host(int rank) const {
    return hosts_.at(static_cast<std::size_t>(rank));
  }
  /// Of the way from one rank to another: the time that a message of no bytes takes.
  Seconds latency(int from, int to) const;

 private:
  simgrid_compat::Zone add_node(SimEngine& engine, simgrid_compat::s4u::NetZone* parent,
                                const ClusterSpec& cluster, std::int64_t node);

  std::vector<simgrid_compat::s4u::Host*> hosts_;  // by rank
  std::int64_t ranks_;
};

}  // namespace gradsync
