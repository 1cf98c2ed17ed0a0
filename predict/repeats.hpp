#pragma once

#include <string>
#include <vector>

#include "gradsync/predict/bench_table.hpp"
#include "gradsync/predict/ring_cluster.hpp"

namespace gradsync {

/// Of at least one time.
Seconds median_of(std::vector<Seconds> times);

/// Runs of one benchmark, one after the other, taken together.
struct RepeatedBench {
  BenchTable table;   ///< each size: the median over runs of the runs' medians over iterations
  double spread = 0;  ///< of a size between runs, (largest - least) / median; the median over sizes
};
/// `runs` have the same sizes; there is one at least.
RepeatedBench combine_runs(const std::vector<BenchTable>& runs);

/// Why a measurement says little of the machine, a sentence each: runs that differ by more than
/// 20%, times that fall by more than 20% with the size, residuals of more than 25% rms. Empty for
/// a quiet machine.
std::vector<std::string> signs_of_noise(const RepeatedBench& bench, const RingCluster& ring);

/// The 95% ranges of a ring's numbers, for a description: "intra_node.bandwidth: 1.9 to 2.1 GB/s
/// (95%)".
std::vector<std::string> ranges_of(const RingCluster& ring, const RepeatedBench& bench);

}  // namespace gradsync
