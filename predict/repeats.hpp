#pragma once

#include <string>
#include <vector>

#include "gradsync/predict/bench_table.hpp"
#include "gradsync/predict/ring_cluster.hpp"

namespace gradsync {

/// Needs at least one time.
Seconds median_of(std::vector<Seconds> times);

/// Consecutive runs of one benchmark, combined.
struct RepeatedBench {
  BenchTable table;   ///< per size: median over the runs of their medians over iterations
  double spread = 0;  ///< (largest - least) / median of a size's runs; median over sizes
};
/// `runs` must have the same sizes and must not be empty.
RepeatedBench combine_runs(const std::vector<BenchTable>& runs);

/// Reasons not to trust a measurement, one sentence each: runs that differ by more than 20%, times
/// that fall by more than 20% with the size, residuals above 25% rms. Empty for a quiet machine.
std::vector<std::string> signs_of_noise(const RepeatedBench& bench, const RingCluster& ring);

/// The 95% intervals of a ring's numbers, for a description: "intra_node.bandwidth: 1.9 to 2.1 GB/s
/// (95%)".
std::vector<std::string> ranges_of(const RingCluster& ring, const RepeatedBench& bench);

}  // namespace gradsync
