// What each rank, adapter and link carries.

#include <numeric>
#include <set>

#include "gradsync/simulator/platform/links.hpp"
#include "tests/sim/algorithm_cases.hpp"

using namespace gradsync;
using namespace gradsync::test;

TEST_CASE("each rank and each adapter carries the bytes that the algorithm says") {
  constexpr Bytes kBytes = 1 << 20;
  const auto sent = [&](const Case& c) {
    std::vector<double> shares(static_cast<std::size_t>(c.ranks));
    const auto plan = plan_of(c, kBytes);
    for (const PlanPhase& phase : plan->phases()) {
      for (const PlanEdge& edge : phase.edges) {
        shares[static_cast<std::size_t>(edge.from)] += edge.share;
      }
    }
    return shares;
  };
  const auto crossing = [&](const Case& c) {  // out of node 0
    const auto gpus = static_cast<int>(c.cluster.gpus_per_node);
    double share = 0;
    const auto plan = plan_of(c, kBytes);
    for (const PlanPhase& phase : plan->phases()) {
      for (const PlanEdge& edge : phase.edges) {
        if (edge.from < gpus && edge.to >= gpus) share += edge.share;
      }
    }
    return share;
  };
  // Ring: 2(n-1)/n of the bytes from each rank, and as much out of each node.
  // A network that gives its payload half of the line carries twice as much.
  ClusterSpec half = hopper_nodes(4, 4);
  half.network.payload = 0.5;
  CHECK(crossing({"", half, 8, Algorithm::kTree}) == Approx(2));
  const Case ring{"", hopper_nodes(4, 4), 16, Algorithm::kRing};
  for (const double share : sent(ring)) CHECK(share == Approx(2 * 15.0 / 16));
  CHECK(crossing(ring) == Approx(2 * 15.0 / 16));
  // bcube and halving-doubling of a power of two: the same, over log2(n) partners.
  for (const Algorithm algorithm : {Algorithm::kBcube, Algorithm::kHalvingDoubling}) {
    for (const double share : sent({"", gloo_nodes(1), 8, algorithm})) {
      CHECK(share == Approx(2 * 7.0 / 8));
    }
  }
  // NVLS: (n+1)/n, and what it needs of a link beside that.
  for (const double share : sent({"", hopper_nodes(8, 8), 8, Algorithm::kNvls})) {
    CHECK(share == Approx(9.0 / 8 / nccl::kNvlsPayload));
  }
  // A tree over two nodes: the bytes cross once each way, half of the ring's twice
  // (NVIDIA/nccl#209).
  CHECK(crossing({"", hopper_nodes(4, 4), 8, Algorithm::kTree}) == Approx(1));
  CHECK(crossing({"", hopper_nodes(4, 4), 8, Algorithm::kRing}) == Approx(2 * 7.0 / 8));
  // Two GPUs share an adapter: each adapter has its share all the same.
  for (const Algorithm algorithm : {Algorithm::kTree, Algorithm::kRing}) {
    std::vector<double> adapters(4);
    const auto plan = plan_of({"", hopper_nodes(8, 4), 16, algorithm}, kBytes);
    for (const PlanPhase& phase : plan->phases()) {
      for (const PlanEdge& edge : phase.edges) {
        const bool leaves = edge.from < 8 && edge.to >= 8;
        if (leaves) adapters[static_cast<std::size_t>(edge.from / 2)] += edge.share;
      }
    }
    for (const double share : adapters) {
      CHECK(share == Approx(algorithm == Algorithm::kTree ? 0.25 : 2 * 15.0 / 16 / 4));
    }
  }
  // Inside the chain: up once and down once.
  const std::vector<double> tree = sent({"", hopper_nodes(8, 8), 8, Algorithm::kTree});
  CHECK(std::accumulate(tree.begin(), tree.end(), 0.0) == Approx(2 * 7));
}

TEST_CASE("the closed form knows the same links as SimGrid's platform") {
  ClusterSpec mesh = hopper_nodes(8, 4);
  mesh.node_topology = ClusterSpec::NodeTopology::kCubeMesh;
  ClusterSpec pcie = hopper_nodes(8, 2);
  pcie.node_topology = ClusterSpec::NodeTopology::kPcieTree;
  pcie.pcie_socket = {{9e9}, Seconds(3e-6)};
  ClusterSpec leaves = hopper_nodes(8, 3);
  leaves.topology = ClusterSpec::Topology::kLeafSpine;
  leaves.leaf_nodes = 2;
  leaves.leaf_oversubscription = 3;
  leaves.software.host_bandwidth = BytesPerSecond{7e9};
  for (const ClusterSpec& cluster : {hopper_nodes(8, 8), mesh, pcie, leaves}) {
    constexpr int kRanks = 40;
    SimEngine engine;
    const Platform platform(engine, cluster, kRanks);
    const auto simgrid = make_platform_links(platform);
    const auto structural = make_structural_links(cluster, kRanks);
    const auto bandwidths = [](Links& links, int from, int to) {
      std::vector<std::size_t> route;
      links.route(from, to, route);
      std::multiset<double> values;
      for (const std::size_t link : route) values.insert(links.bandwidth(link).value);
      return values;
    };
    for (int from = 0; from < kRanks; from += 3) {
      for (int to = 0; to < kRanks; ++to) {
        if (from == to) continue;
        CAPTURE(from, to);
        CHECK(structural->latency(from, to).count() == Approx(simgrid->latency(from, to).count()));
        CHECK(bandwidths(*structural, from, to) == bandwidths(*simgrid, from, to));
      }
    }
  }
}
