// Every algorithm at every fidelity: values, bytes on the wires, times that agree, and what must
// hold between times whatever the numbers.

#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>
#include <numeric>
#include <set>

#include "gradsync/core/error.hpp"
#include "gradsync/simulator/plan/planner.hpp"
#include "gradsync/simulator/platform/links.hpp"
#include "tests/sim/sim_support.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/paths.hpp"

using namespace gradsync;
using namespace gradsync::test;

namespace {

using Algorithm = CommunicationSpec::Algorithm;
using Library = ClusterSpec::Library;

ClusterSpec gloo_nodes(int gpus) {
  ClusterSpec cluster;
  cluster.gpus_per_node = gpus;
  cluster.intra_node = {{20e9}, Seconds(2e-6)};
  cluster.inter_node = {{5e9}, Seconds(5e-6)};
  return cluster;
}

ClusterSpec hopper_nodes(int gpus, int nics) {
  ClusterSpec cluster;
  cluster.library = Library::kNccl;
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

std::vector<Case> uncontended() {
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

SimulationOptions options_of(const Case& c, Fidelity fidelity) {
  SimulationOptions options = with_fidelity(fidelity);
  options.communication.algorithm = c.algorithm;
  return options;
}

double time_of(const Case& c, std::int64_t elements, Fidelity fidelity) {
  const RunOutcome outcome = simulate(
      c.cluster, c.ranks, options_of(c, fidelity), [&](const RankRuntime& runtime, RankReport&) {
        runtime.process_group->allreduce(meta(elements), ReduceOp::kSum, {})->wait();
      });
  for (const RankReport& report : outcome.reports) REQUIRE(report.error.empty());
  return outcome.simulated->count();
}

CollectiveRecord allreduce_of(Bytes bytes) {
  CollectiveRecord record;
  record.op = OpType::kAllreduce;
  record.bytes = bytes;
  record.elements = bytes / 4;
  return record;
}

std::shared_ptr<const Plan> plan_of(const Case& c, Bytes bytes) {
  CommunicationSpec communication;
  communication.algorithm = c.algorithm;
  Planner planner(c.cluster, communication, c.ranks, [](int, int) { return Seconds(1e-6); });
  return planner.plan(allreduce_of(bytes), false);
}

}  // namespace

TEST_CASE("the two trees of a double binary tree span all nodes, and share no inner node but one") {
  for (const int nodes : {2, 3, 4, 5, 7, 8, 16, 31, 64, 100}) {
    CAPTURE(nodes);
    std::vector<std::set<int>> inner(2);
    for (int tree = 0; tree < 2; ++tree) {
      int roots = 0;
      std::vector<int> children(static_cast<std::size_t>(nodes));
      for (int node = 0; node < nodes; ++node) {
        const int parent = tree_parent(node, nodes, tree);
        if (parent < 0) {
          ++roots;
          continue;
        }
        REQUIRE(parent < nodes);
        ++children[static_cast<std::size_t>(parent)];
        inner[static_cast<std::size_t>(tree)].insert(parent);
        int steps = 0;  // every node reaches the root
        for (int up = parent; up >= 0; up = tree_parent(up, nodes, tree)) REQUIRE(++steps <= nodes);
        CHECK(steps <= 1 + std::ceil(std::log2(nodes)));
      }
      CHECK(roots == 1);
      for (const int count : children) CHECK(count <= 2);
    }
    std::vector<int> both;
    std::set_intersection(inner[0].begin(), inner[0].end(), inner[1].begin(), inner[1].end(),
                          std::back_inserter(both));
    CHECK(both.size() <= 2);  // the roots have one child more than the others
  }
}

TEST_CASE("every algorithm sums over all ranks, at every fidelity") {
  for (const Case& c : uncontended()) {
    for (const Fidelity fidelity : {Fidelity::kMessage, Fidelity::kFlow, Fidelity::kAnalytic}) {
      CAPTURE(c.name, static_cast<int>(fidelity));
      constexpr std::int64_t kElements = 1003;
      SimulationOptions options = options_of(c, fidelity);
      options.device = &cpu_device();
      const RunOutcome outcome = simulate(
          c.cluster, c.ranks, options, [&](const RankRuntime& runtime, RankReport& report) {
            Tensor tensor = Tensor::empty({kElements}, DType::kFloat32, *runtime.device);
            auto* values = reinterpret_cast<float*>(tensor.data());
            for (std::int64_t i = 0; i < kElements; ++i) {
              values[i] = static_cast<float>((report.rank + 1) * (i % 100));
            }
            runtime.process_group->allreduce(tensor, ReduceOp::kSum, {})->wait();
            const auto sum = static_cast<float>(c.ranks * (c.ranks + 1) / 2);
            bool right = true;
            for (std::int64_t i = 0; i < kElements; ++i) {
              right = right && values[i] == sum * static_cast<float>(i % 100);
            }
            CHECK(right);
          });
      for (const RankReport& report : outcome.reports) REQUIRE(report.error.empty());
    }
  }
}

TEST_CASE("NCCL's broadcast and all-gather bring every rank its bytes") {
  const ClusterSpec cluster = hopper_nodes(4, 2);
  constexpr int kRanks = 12;
  for (const Fidelity fidelity : {Fidelity::kMessage, Fidelity::kFlow, Fidelity::kAnalytic}) {
    SimulationOptions options = with_fidelity(fidelity);
    options.device = &cpu_device();
    std::map<std::string, double> ended;
    const RunOutcome outcome =
        simulate(cluster, kRanks, options, [&](const RankRuntime& runtime, RankReport& report) {
          Tensor tensor = Tensor::empty({8}, DType::kUInt8, *runtime.device);
          std::memset(tensor.data(), report.rank + 1, 8);
          runtime.process_group->broadcast(tensor, 5, {})->wait();
          for (int i = 0; i < 8; ++i) CHECK(static_cast<int>(tensor.data()[i]) == 6);
          Tensor slice = Tensor::empty({3}, DType::kUInt8, *runtime.device);
          std::memset(slice.data(), report.rank, 3);
          Tensor all = Tensor::empty({3 * kRanks}, DType::kUInt8, *runtime.device);
          runtime.process_group->allgather(all, slice, {})->wait();
          for (int i = 0; i < 3 * kRanks; ++i) CHECK(static_cast<int>(all.data()[i]) == i / 3);
          runtime.process_group->barrier({})->wait();
        });
    for (const RankReport& report : outcome.reports) REQUIRE(report.error.empty());
  }
}

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
      // What the switch adds up and what goes to other nodes share a GPU's cable.
      const double allowed = c.algorithm == Algorithm::kNvlsTree ? 0.05 : 0.01;
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
  const Case ring{"", hopper_nodes(4, 4), 16, Algorithm::kRing};
  for (const double share : sent(ring)) CHECK(share == Approx(2 * 15.0 / 16));
  CHECK(crossing(ring) == Approx(2 * 15.0 / 16));
  // bcube and halving-doubling of a power of two: the same, over log2(n) partners.
  for (const Algorithm algorithm : {Algorithm::kBcube, Algorithm::kHalvingDoubling}) {
    for (const double share : sent({"", gloo_nodes(1), 8, algorithm})) {
      CHECK(share == Approx(2 * 7.0 / 8));
    }
  }
  // NVLS: (n+1)/n.
  for (const double share : sent({"", hopper_nodes(8, 8), 8, Algorithm::kNvls})) {
    CHECK(share == Approx(9.0 / 8));
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

TEST_CASE("one actor stands for all ranks that are alike, at the same simulated time") {
  const Case c{"", hopper_nodes(8, 8), 64, Algorithm::kAuto};
  const auto run = [&](bool alike) {
    SimulationOptions options = options_of(c, Fidelity::kAnalytic);
    options.ranks_are_alike = alike;
    return simulate(
        c.cluster, c.ranks, options, [&](const RankRuntime& runtime, RankReport& report) {
          CHECK(runtime.process_group->size() == 64);
          for (int i = 0; i < 3; ++i) {
            runtime.clock->advance(Seconds(1e-3));
            runtime.process_group->allreduce(meta(1'000'000), ReduceOp::kSum, {})->wait();
          }
          // What the engine exchanges of its own has bytes: others' are like rank 0's.
          Tensor count = Tensor::empty({1}, DType::kInt32, cpu_device());
          *reinterpret_cast<std::int32_t*>(count.data()) = 7;
          runtime.process_group->broadcast(count, 3, {})->wait();
          Tensor all = Tensor::empty({64}, DType::kInt32, cpu_device());
          runtime.process_group->allgather(all, count, {})->wait();
          CHECK(reinterpret_cast<std::int32_t*>(all.data())[63] == 7);
          runtime.process_group->allreduce(count, ReduceOp::kSum, {})->wait();
          CHECK(*reinterpret_cast<std::int32_t*>(count.data()) == 7 * 64);
          runtime.process_group->barrier({})->wait();
          report.steps_completed = 3;
          runtime.process_group->shutdown();
        });
  };
  const RunOutcome all = run(false);
  const RunOutcome one = run(true);
  CHECK(one.simulated->count() == Approx(all.simulated->count()).epsilon(1e-9));
  REQUIRE(one.reports.size() == 64);
  for (int rank = 0; rank < 64; ++rank) {
    const RankReport& report = one.reports[static_cast<std::size_t>(rank)];
    CHECK(report.rank == rank);
    CHECK(report.steps_completed == 3);
    CHECK(report.state == RankState::kFinished);
  }
  CHECK_THAT(one.notes.at(0), contains("rank 0 stands for them"));
}

TEST_CASE("NCCL's choice is explained once for each size") {
  const Case c{"", hopper_nodes(8, 8), 16, Algorithm::kAuto};
  const RunOutcome outcome =
      simulate(c.cluster, c.ranks, options_of(c, Fidelity::kFlow),
               [&](const RankRuntime& runtime, RankReport&) {
                 for (const std::int64_t elements : {100, 100, 50'000'000}) {
                   runtime.process_group->allreduce(meta(elements), ReduceOp::kSum, {})->wait();
                 }
               });
  REQUIRE(outcome.explanations.size() == 2);
  CHECK_THAT(outcome.explanations[0], contains("allreduce of 400 bytes: ") &&
                                          contains("<- chosen") && contains("nvls_tree"));
}

TEST_CASE("every cluster that comes with gradsync runs, and a faster network is no slower") {
  namespace fs = std::filesystem;
  const fs::path scenarios = fs::path(gradsync::test::source_dir()) / "scenarios";
  int files = 0;
  for (const auto& entry : fs::directory_iterator(scenarios / "clusters")) {
    const std::string name = entry.path().filename().string();
    CAPTURE(name);
    ++files;
    const Scenario scenario =
        parse_scenario(R"({"backend": "sim", "ranks": 8, "cluster": "clusters/)" + name + "\"}",
                       "test.json", scenarios.string());
    Case c{"", scenario.cluster, 8, Algorithm::kAuto};
    c.cluster.nodes = 0;
    const double time = time_of(c, 1'000'000, Fidelity::kFlow);
    CHECK(time > 0);
    c.cluster.inter_node.bandwidth.value *= 2;
    c.cluster.intra_node.bandwidth.value *= 2;
    CHECK(time_of(c, 1'000'000, Fidelity::kFlow) <= time * (1 + 1e-9));
  }
  CHECK(files >= 9);
}
