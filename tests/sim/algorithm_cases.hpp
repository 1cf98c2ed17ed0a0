#pragma once

#include <memory>
#include <vector>

#include "gradsync/simulator/plan/planner.hpp"
#include "tests/sim/sim_support.hpp"
#include "tests/support/catch.hpp"

// Clusters and algorithms that tests of the simulated libraries go through.
namespace gradsync::test {

using Algorithm = CommunicationSpec::Algorithm;

inline ClusterSpec gloo_nodes(int gpus) {
  ClusterSpec cluster;
  cluster.gpus_per_node = gpus;
  cluster.intra_node = {{20e9}, Seconds(2e-6)};
  cluster.inter_node = {{5e9}, Seconds(5e-6)};
  return cluster;
}

inline ClusterSpec hopper_nodes(int gpus, int nics) {
  ClusterSpec cluster;
  cluster.library = ClusterSpec::Library::kNccl;
  cluster.generation = ClusterSpec::Generation::kHopper;
  cluster.gpus_per_node = gpus;
  cluster.nics_per_node = nics;
  cluster.intra_node = {{370.8e9}, Seconds(0.3e-6)};
  cluster.inter_node = {{50e9}, Seconds(1e-6)};
  return cluster;
}

struct Case {
  const char* name;
  ClusterSpec cluster;
  int ranks;
  Algorithm algorithm;
};

inline std::vector<Case> uncontended() {
  ClusterSpec torus = gloo_nodes(1);
  torus.topology = ClusterSpec::Topology::kTorus;
  torus.torus_dimensions = {8};
  return {
      {"gloo ring", gloo_nodes(1), 8, Algorithm::kRing},
      {"gloo ring in one node", gloo_nodes(8), 5, Algorithm::kAuto},
      {"gloo ring over nodes", gloo_nodes(4), 8, Algorithm::kRing},
      {"gloo ring on a torus", torus, 8, Algorithm::kRing},
      {"bcube", gloo_nodes(1), 8, Algorithm::kBcube},
      {"bcube of 6", gloo_nodes(1), 6, Algorithm::kBcube},
      {"halving-doubling", gloo_nodes(1), 16, Algorithm::kHalvingDoubling},
      {"halving-doubling of 6", gloo_nodes(1), 6, Algorithm::kHalvingDoubling},
      {"hierarchical", gloo_nodes(4), 16, Algorithm::kHierarchical},
      {"nccl ring", hopper_nodes(8, 8), 8, Algorithm::kRing},
      {"nccl ring over nodes", hopper_nodes(4, 4), 16, Algorithm::kRing},
      {"nccl tree in a node", hopper_nodes(8, 8), 8, Algorithm::kTree},
      {"nccl tree over 4 nodes", hopper_nodes(4, 4), 16, Algorithm::kTree},
      {"nccl tree over 5 nodes", hopper_nodes(2, 2), 10, Algorithm::kTree},
      {"nvls", hopper_nodes(8, 8), 8, Algorithm::kNvls},
      {"nvls tree", hopper_nodes(4, 4), 16, Algorithm::kNvlsTree},
      {"nccl auto", hopper_nodes(4, 4), 12, Algorithm::kAuto},
      {"nccl hierarchical", hopper_nodes(4, 1), 12, Algorithm::kHierarchical},
  };
}

inline SimulationOptions options_of(const Case& c, Fidelity fidelity) {
  SimulationOptions options = with_fidelity(fidelity);
  options.communication.algorithm = c.algorithm;
  return options;
}

inline double time_of(const Case& c, std::int64_t elements, Fidelity fidelity) {
  const RunOutcome outcome = simulate(
      c.cluster, c.ranks, options_of(c, fidelity), [&](const RankRuntime& runtime, RankReport&) {
        runtime.process_group->allreduce(meta(elements), ReduceOp::kSum, {})->wait();
      });
  for (const RankReport& report : outcome.reports) REQUIRE(report.error.empty());
  return outcome.simulated->count();
}

inline CollectiveRecord allreduce_of(Bytes bytes) {
  CollectiveRecord record;
  record.op = OpType::kAllreduce;
  record.bytes = bytes;
  record.elements = bytes / 4;
  return record;
}

inline std::shared_ptr<const Plan> plan_of(const Case& c, Bytes bytes) {
  CommunicationSpec communication;
  communication.algorithm = c.algorithm;
  Planner planner(c.cluster, communication, c.ranks, [](int, int) { return Seconds(1e-6); });
  return planner.plan(allreduce_of(bytes), false);
}

}  // namespace gradsync::test
