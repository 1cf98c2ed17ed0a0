#pragma once

#include <nlohmann/json.hpp>

#include "gradsync/predict/fit.hpp"
#include "gradsync/testbed/scenario/scenario.hpp"

namespace gradsync {

/// The benchmark sizes to which a cluster's links are fitted.
struct FitRange {
  Bytes first = 0;
  Bytes last = 0;
};

/// Links on which a ring all-reduce takes the benchmark's times.
struct RingCluster {
  FitRange range;                  ///< the sizes that were used
  FitSegment line;                 ///< time = latency + bytes / rate over them
  LinkSpec hop;                    ///< from a rank to the next
  nlohmann::ordered_json cluster;  ///< as a scenario's "cluster"
};

/// A ring of n ranks takes 2(n-1) (a + S/(n b)) for S bytes (simulator/README.md), so a line
/// through the measured times gives a hop's latency a and bandwidth b. A hop is two cables with
/// half of the latency each. If the ranks need more than one node of `ranks_per_node`, these are
/// the nodes' cables (inter_node) with one adapter per node, otherwise those inside a node
/// (intra_node).
///
/// Uses the sizes in `range`; by default those from 64 KiB, the range of gradients, or all sizes if
/// there are fewer than three of those. `name` becomes the name of the description.
RingCluster fit_ring_cluster(const BenchTable& table, int ranks_per_node, const std::string& name,
                             const FitRange* range = nullptr);

/// The links, the residuals of the line, and the limits of the description, as text.
std::string describe(const RingCluster& fit, int ranks);

}  // namespace gradsync
