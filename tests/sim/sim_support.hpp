#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gradsync/comm/process_group.hpp"
#include "gradsync/simulator/simulation.hpp"

namespace gradsync::test {

/// Ranks around one switch; a message of S bytes between two of them takes latency + S / bandwidth.
inline ClusterSpec one_switch(int ranks, Seconds latency = Seconds(4e-6),
                              double bytes_per_second = 12.5e9) {
  ClusterSpec cluster;
  cluster.nodes = 1;
  cluster.gpus_per_node = ranks;
  cluster.intra_node = {{bytes_per_second}, latency / 2};
  return cluster;
}

inline SimulationOptions with_fidelity(Fidelity fidelity) {
  SimulationOptions options;
  options.fidelity = fidelity;
  return options;
}

inline Tensor meta(std::int64_t elements, DType dtype = DType::kFloat32) {
  return Tensor::empty({elements}, dtype, meta_device());
}

inline CollectiveOptions labelled(const std::string& what) {
  CollectiveOptions options;
  options.label.what = what;
  return options;
}

/// Simulated time of one all-reduce of `elements` float32 that all ranks issue at time 0.
inline Seconds allreduce_time(const ClusterSpec& cluster, int ranks, std::int64_t elements,
                              Fidelity fidelity) {
  const RunOutcome outcome = simulate(
      cluster, ranks, with_fidelity(fidelity), [&](const RankRuntime& runtime, RankReport&) {
        runtime.process_group->allreduce(meta(elements), ReduceOp::kSum, {})->wait();
      });
  return *outcome.simulated;
}

}  // namespace gradsync::test
