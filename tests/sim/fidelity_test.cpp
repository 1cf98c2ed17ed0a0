// Times of the three fidelities that agree, and what must hold between times whatever the numbers.

#include "tests/sim/algorithm_cases.hpp"

using namespace gradsync;
using namespace gradsync::test;

TEST_CASE("a tree over many leaves with thin cables: coarser fidelities within 12 %") {
  ClusterSpec leaves = hopper_nodes(2, 2);
  leaves.topology = ClusterSpec::Topology::kLeafSpine;
  leaves.leaf_nodes = 2;
  for (const double oversubscription : {4., 8.}) {
    leaves.leaf_oversubscription = oversubscription;
    const Case c{"", leaves, 24, Algorithm::kTree};
    for (const std::int64_t elements : {262'144, 1'000'000, 25'000'000}) {
      const double message = time_of(c, elements, Fidelity::kMessage);
      CAPTURE(oversubscription, elements, message);
      CHECK(time_of(c, elements, Fidelity::kFlow) == Approx(message).epsilon(0.12));
      CHECK(time_of(c, elements, Fidelity::kAnalytic) == Approx(message).epsilon(0.12));
    }
  }
}

TEST_CASE("fidelities agree within 1 % where nothing is contended") {
  for (const Case& c : uncontended()) {
    for (const std::int64_t elements : {256, 40'000, 262'144, 6'553'600}) {
      const double message = time_of(c, elements, Fidelity::kMessage);
      const double flow = time_of(c, elements, Fidelity::kFlow);
      const double analytic = time_of(c, elements, Fidelity::kAnalytic);
      CAPTURE(c.name, elements, message, flow, analytic);
      // In trees of NCCL the way up and the way down meet on the cables of a node's GPUs.
      const bool is_shared = c.cluster.library == Library::kNccl &&
                             (c.algorithm == Algorithm::kTree || c.algorithm == Algorithm::kAuto ||
                              c.algorithm == Algorithm::kNvlsTree);
      const double allowed = is_shared ? 0.05 : 0.01;
      CHECK(flow == Approx(message).epsilon(allowed));
      CHECK(analytic == Approx(message).epsilon(allowed));
    }
  }
}

TEST_CASE("fidelities agree within 5 % under contention") {
  ClusterSpec shared = hopper_nodes(4, 1);
  ClusterSpec leaves = hopper_nodes(2, 2);
  leaves.topology = ClusterSpec::Topology::kLeafSpine;
  leaves.leaf_nodes = 2;
  leaves.leaf_oversubscription = 4;
  ClusterSpec cpu = gloo_nodes(4);
  cpu.software.host_bandwidth = BytesPerSecond{3e9};
  ClusterSpec tree = gloo_nodes(1);
  tree.topology = ClusterSpec::Topology::kFatTree;
  tree.fat_tree_down = {4, 4};
  tree.fat_tree_up = {1, 1};
  tree.fat_tree_links = {1, 1};
  ClusterSpec pcie = hopper_nodes(8, 1);
  pcie.node_topology = ClusterSpec::NodeTopology::kPcieTree;
  pcie.intra_node = {{12e9}, Seconds(0.5e-6)};
  const std::vector<Case> cases = {
      {"ring, one adapter", shared, 16, Algorithm::kRing},
      {"tree, one adapter", shared, 16, Algorithm::kTree},
      {"ring, oversubscribed", leaves, 12, Algorithm::kRing},
      {"tree, oversubscribed", leaves, 12, Algorithm::kTree},
      {"ring, slow CPUs", cpu, 8, Algorithm::kRing},
      {"bcube, slow CPUs", cpu, 8, Algorithm::kBcube},
      {"ring, fat tree", tree, 16, Algorithm::kRing},
      {"ring, PCIe", pcie, 8, Algorithm::kRing},
  };
  for (const Case& c : cases) {
    for (const std::int64_t elements : {1'000'000, 25'000'000}) {
      const double message = time_of(c, elements, Fidelity::kMessage);
      const double flow = time_of(c, elements, Fidelity::kFlow);
      const double analytic = time_of(c, elements, Fidelity::kAnalytic);
      CAPTURE(c.name, elements, message, flow, analytic);
      CHECK(flow == Approx(message).epsilon(0.05));
      CHECK(analytic == Approx(message).epsilon(0.05));
    }
  }
}

TEST_CASE("times grow with bytes, fall with bandwidth and change with the ranks") {
  for (const Case& c : uncontended()) {
    for (const Fidelity fidelity : {Fidelity::kMessage, Fidelity::kAnalytic}) {
      CAPTURE(c.name, static_cast<int>(fidelity));
      constexpr std::int64_t kElements = 5'000'000;
      const double time = time_of(c, kElements, fidelity);
      CHECK(time_of(c, 2 * kElements, fidelity) > time);
      Case slower = c;
      slower.cluster.intra_node.bandwidth.value /= 4;
      slower.cluster.inter_node.bandwidth.value /= 4;
      CHECK(time_of(slower, kElements, fidelity) > time);
      Case later = c;
      later.cluster.software.per_operation = Seconds(1e-3);
      CHECK(time_of(later, kElements, fidelity) == Approx(time + 1e-3).epsilon(1e-6));
    }
  }
  for (const Algorithm algorithm : {Algorithm::kRing, Algorithm::kTree}) {
    double last = 0;
    for (const int ranks : {8, 16, 32, 64}) {
      const double time =
          time_of({"", hopper_nodes(4, 4), ranks, algorithm}, 100'000, Fidelity::kFlow);
      CHECK(time > last);
      last = time;
    }
  }
}
