#pragma once

#include <nlohmann/json.hpp>

#include "gradsync/predict/fit.hpp"
#include "gradsync/testbed/scenario/scenario.hpp"

namespace gradsync {

/// Which sizes of a benchmark a cluster's links are fitted to.
struct FitRange {
  Bytes first = 0;
  Bytes last = 0;
};

/// The links on which a ring all-reduce takes as long as a benchmark says.
struct RingCluster {
  FitRange range;                  ///< of the sizes that were used
  FitSegment line;                 ///< time = latency + bytes / rate over them
  LinkSpec hop;                    ///< of the way from a rank to the next
  nlohmann::ordered_json cluster;  ///< as a scenario's "cluster"
};

/// A ring of n ranks takes 2(n-1) (a + S/(n b)) for S bytes (simulator/README.md), so a line
/// through the measured times gives a hop's latency a and bandwidth b. A hop is two cables: each
/// has half of the latency. Where the ranks need more than one node of `ranks_per_node` they are
/// the nodes' cables (inter_node), of one adapter a node, else those inside a node (intra_node).
///
/// Used are the sizes in `range`; by default those of 64 KiB and more, where gradients are, or all
/// if there are fewer than three of those. `name` becomes that of the description.
RingCluster fit_ring_cluster(const BenchTable& table, int ranks_per_node, const std::string& name,
                             const FitRange* range = nullptr);

/// The links, the residuals of the line, and what the description cannot say.
std::string describe(const RingCluster& fit, int ranks);

}  // namespace gradsync
