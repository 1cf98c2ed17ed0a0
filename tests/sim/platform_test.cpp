#include "gradsync/simulator/platform/platform.hpp"

#include <fstream>
#include <string>

#include "gradsync/simulator/platform/rank_network.hpp"
#include "tests/sim/sim_support.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temporary_directory.hpp"

using namespace gradsync;
using namespace gradsync::test;

namespace {

ClusterSpec two_by_four() {
  ClusterSpec cluster;
  cluster.nodes = 2;
  cluster.gpus_per_node = 4;
  cluster.intra_node = {{10e9}, Seconds(1e-6)};
  cluster.inter_node = {{1e9}, Seconds(10e-6)};
  return cluster;
}

ClusterSpec fat_tree() {
  ClusterSpec cluster = two_by_four();
  cluster.nodes = 4;
  cluster.gpus_per_node = 2;
  cluster.topology = ClusterSpec::Topology::kFatTree;
  cluster.fat_tree_down = {2, 2};
  cluster.fat_tree_up = {1, 1};
  cluster.fat_tree_links = {1, 1};
  return cluster;
}

/// Times at which messages of `bytes` arrive that all start at 0.
std::vector<double> arrivals(const ClusterSpec& cluster, int ranks,
                             const std::vector<std::pair<int, int>>& ways, Bytes bytes) {
  SimEngine engine;
  const Platform platform(engine, cluster, ranks);
  LinkLoads loads(engine);
  Transfers transfers(engine, loads, /* solve_all = */ false);
  RankNetwork network(engine, platform, loads, transfers);
  std::vector<double> times(ways.size());
  engine.start_actor("sender", platform.host(0), SimulationOptions::kReplayStackBytes, [&] {
    engine.in_kernel([&] {
      for (std::size_t i = 0; i < ways.size(); ++i) {
        network.send(ways[i].first, ways[i].second, bytes,
                     {[&, i] { times[i] = engine.now().count(); }});
      }
    });
  });
  engine.run([] {});
  return times;
}

}  // namespace

TEST_CASE("a route has the latencies of its cables") {
  SimEngine engine;
  const Platform star(engine, two_by_four(), 8);
  CHECK(star.latency(0, 3).count() == Approx(2e-6));
  CHECK(star.latency(3, 0).count() == Approx(2e-6));
  CHECK(star.latency(3, 4).count() == Approx(22e-6));
  CHECK(star.latency(7, 0).count() == Approx(22e-6));
}

TEST_CASE("in a fat tree each cable between switches adds a latency") {
  SimEngine engine;
  const Platform tree(engine, fat_tree(), 8);
  CHECK(tree.latency(0, 1).count() == Approx(2e-6));
  CHECK(tree.latency(0, 2).count() == Approx(22e-6));
  CHECK(tree.latency(0, 4).count() == Approx(42e-6));
  CHECK(tree.latency(6, 1).count() == Approx(42e-6));
}

TEST_CASE("a message takes its bytes over the narrowest cable, and cables are full duplex") {
  // 1 MB: 0.1 ms at 10 GB/s inside a node, 1 ms at 1 GB/s between nodes.
  CHECK(arrivals(two_by_four(), 8, {{0, 1}}, 1'000'000)[0] == Approx(2e-6 + 1e-4));
  CHECK(arrivals(two_by_four(), 8, {{0, 4}}, 1'000'000)[0] == Approx(22e-6 + 1e-3));
  for (const double time : arrivals(two_by_four(), 8, {{0, 4}, {4, 0}}, 1'000'000)) {
    CHECK(time == Approx(22e-6 + 1e-3));
  }
}

TEST_CASE("flows that leave a node share its cable to the fabric") {
  for (const double time : arrivals(two_by_four(), 8, {{0, 4}, {1, 5}}, 1'000'000)) {
    CHECK(time == Approx(22e-6 + 2e-3));
  }
  for (const double time :
       arrivals(two_by_four(), 8, {{0, 4}, {1, 5}, {2, 6}, {3, 7}}, 1'000'000)) {
    CHECK(time == Approx(22e-6 + 4e-3));
  }
  // Inside the node every GPU has its own.
  for (const double time : arrivals(two_by_four(), 8, {{0, 1}, {2, 3}}, 1'000'000)) {
    CHECK(time == Approx(2e-6 + 1e-4));
  }
}

TEST_CASE("flows that meet above a fat tree's leaf switches share the cable there") {
  // Nodes 0 and 1 under one switch, 2 and 3 under the other; one cable up from each.
  for (const double time : arrivals(fat_tree(), 8, {{0, 4}, {2, 6}}, 1'000'000)) {
    CHECK(time == Approx(42e-6 + 2e-3));
  }
  ClusterSpec two_cables = fat_tree();
  two_cables.fat_tree_links = {1, 2};
  for (const double time : arrivals(two_cables, 8, {{0, 4}, {2, 6}}, 1'000'000)) {
    CHECK(time == Approx(42e-6 + 1e-3));
  }
}

TEST_CASE("each GPU leaves its node by its own adapter") {
  ClusterSpec rails = two_by_four();
  rails.nics_per_node = 2;  // GPUs 0 and 1 share the first, 2 and 3 the second
  const auto times = arrivals(rails, 8, {{0, 4}, {1, 5}, {2, 6}}, 1'000'000);
  CHECK(times[0] == Approx(22e-6 + 2e-3));
  CHECK(times[1] == Approx(22e-6 + 2e-3));
  CHECK(times[2] == Approx(22e-6 + 1e-3));
}

TEST_CASE("GPUs of a cube mesh have one or two NVLinks to each neighbour, and a detour else") {
  ClusterSpec mesh;
  mesh.node_topology = ClusterSpec::NodeTopology::kCubeMesh;
  mesh.intra_node = {{20e9}, Seconds(1e-6)};
  const auto times = arrivals(mesh, 8, {{0, 1}, {0, 3}, {0, 7}}, 1'000'000);
  CHECK(times[0] == Approx(1e-6 + 5e-5));  // one link
  // Two links to 3; the way to 7 goes by 3 and shares them: 40 GB/s for both, 20 GB/s beyond.
  CHECK(times[1] == Approx(1e-6 + 5e-5));
  CHECK(times[2] == Approx(2e-6 + 5e-5));
  mesh.nodes = 2;
  mesh.inter_node = {{10e9}, Seconds(5e-6)};
  CHECK(arrivals(mesh, 16, {{3, 11}}, 1'000'000)[0] == Approx(10e-6 + 1e-4));
}

TEST_CASE("GPUs on PCIe share the cable of their switch, and sockets theirs") {
  ClusterSpec tree;
  tree.node_topology = ClusterSpec::NodeTopology::kPcieTree;
  tree.gpus_per_node = 8;
  tree.pcie_gpus_per_switch = 2;  // switches 0 and 2 on one socket, 1 and 3 on the other
  tree.intra_node = {{10e9}, Seconds(1e-6)};
  tree.pcie_socket = {{5e9}, Seconds(2e-6)};
  CHECK(arrivals(tree, 8, {{0, 1}}, 1'000'000)[0] == Approx(2e-6 + 1e-4));
  for (const double time : arrivals(tree, 8, {{0, 4}, {1, 5}}, 1'000'000)) {
    CHECK(time == Approx(4e-6 + 2e-4));
  }
  CHECK(arrivals(tree, 8, {{0, 2}}, 1'000'000)[0] == Approx(6e-6 + 2e-4));
}

TEST_CASE("nodes under one leaf share its cables up, by the oversubscription") {
  ClusterSpec leaves = two_by_four();
  leaves.nodes = 4;
  leaves.gpus_per_node = 1;
  leaves.topology = ClusterSpec::Topology::kLeafSpine;
  leaves.leaf_nodes = 2;
  leaves.leaf_oversubscription = 2;
  CHECK(arrivals(leaves, 4, {{0, 1}}, 1'000'000)[0] == Approx(22e-6 + 1e-3));
  CHECK(arrivals(leaves, 4, {{0, 2}}, 1'000'000)[0] == Approx(42e-6 + 1e-3));
  for (const double time : arrivals(leaves, 4, {{0, 2}, {1, 3}}, 1'000'000)) {
    CHECK(time == Approx(42e-6 + 2e-3));
  }
}

TEST_CASE("a torus is passed cable by cable, a dragonfly by its routers") {
  ClusterSpec torus = two_by_four();
  torus.nodes = 8;
  torus.gpus_per_node = 1;
  torus.topology = ClusterSpec::Topology::kTorus;
  torus.torus_dimensions = {4, 2};
  CHECK(arrivals(torus, 8, {{0, 1}}, 1'000'000)[0] == Approx(12e-6 + 1e-3));
  CHECK(arrivals(torus, 8, {{0, 2}}, 1'000'000)[0] == Approx(22e-6 + 1e-3));
  CHECK(arrivals(torus, 8, {{0, 3}}, 1'000'000)[0] == Approx(12e-6 + 1e-3));  // round the back
  CHECK(arrivals(torus, 8, {{0, 6}}, 1'000'000)[0] == Approx(32e-6 + 1e-3));
  ClusterSpec dragonfly = torus;
  dragonfly.topology = ClusterSpec::Topology::kDragonfly;
  dragonfly.dragonfly_groups = 2;
  dragonfly.dragonfly_chassis = 1;
  dragonfly.dragonfly_routers = 2;
  dragonfly.dragonfly_nodes = 2;
  CHECK(arrivals(dragonfly, 8, {{0, 1}}, 1'000'000)[0] == Approx(22e-6 + 1e-3));
  CHECK(arrivals(dragonfly, 8, {{0, 2}}, 1'000'000)[0] == Approx(32e-6 + 1e-3));
  const double between_groups = arrivals(dragonfly, 8, {{0, 4}}, 1'000'000)[0];
  CHECK(between_groups > 32e-6 + 1e-3 - 1e-9);
}

TEST_CASE("the CPUs of a node are shared by all that its ranks send and receive") {
  ClusterSpec slow = two_by_four();
  slow.software.host_bandwidth = BytesPerSecond{0.5e9};
  slow.software.per_message = Seconds(7e-6);
  CHECK(arrivals(slow, 8, {{0, 4}}, 1'000'000)[0] == Approx(29e-6 + 2e-3));
  for (const double time : arrivals(slow, 8, {{0, 4}, {5, 1}}, 1'000'000)) {
    CHECK(time == Approx(29e-6 + 4e-3));
  }
  CHECK(arrivals(slow, 8, {{0, 1}}, 1'000'000)[0] == Approx(9e-6 + 2e-3));
}

TEST_CASE("a SimGrid platform file stands for a cluster, its hosts in order for the ranks") {
  const TemporaryDirectory folder;
  const std::string file = folder.path() / "platform.xml";
  std::ofstream(file) << R"(<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1"><zone id="z" routing="Full">
  <host id="first" speed="1Gf"/><host id="second" speed="1Gf"/>
  <link id="wire" bandwidth="1GBps" latency="30us" sharing_policy="SPLITDUPLEX"/>
  <route src="first" dst="second"><link_ctn id="wire" direction="UP"/></route>
</zone></platform>)";
  ClusterSpec cluster;
  cluster.platform_file = file;
  // CTest runs each test in a process of its own; the whole binary runs others before this one.
  try {
    const double arrival = arrivals(cluster, 2, {{0, 1}}, 1'000'000)[0];
    CHECK(arrival == Approx(30e-6 + 1e-3));
  } catch (const ConfigError& error) {
    CHECK(error.details().hint.find("run this scenario by itself") == 0);
  }
  CHECK_THROWS_WITH(arrivals(cluster, 2, {{0, 1}}, 1), contains("run this scenario by itself"));
}

TEST_CASE("a cluster that the ranks do not fit on is refused by its pointer") {
  const auto pointer_of = [](const ClusterSpec& cluster, int ranks) {
    try {
      check_cluster(cluster, ranks);
    } catch (const ConfigError& error) {
      CHECK(error.code() == ErrorCode::kInvalidConfig);
      return error.details().pointer;
    }
    return std::string("accepted");
  };
  CHECK(pointer_of(two_by_four(), 8) == "accepted");
  CHECK(pointer_of(two_by_four(), 9) == "/cluster/nodes");
  CHECK_THROWS_WITH(check_cluster(two_by_four(), 9), contains("nodes and GPUs for 9 ranks") &&
                                                         contains("8 (2 x 4 GPUs)") &&
                                                         contains("3 nodes of 4 GPUs would do"));
  ClusterSpec grows = two_by_four();
  grows.nodes = 0;  // as many as are needed
  CHECK(pointer_of(grows, 1000) == "accepted");
  ClusterSpec tree = fat_tree();
  CHECK(pointer_of(tree, 8) == "accepted");
  tree.fat_tree_down = {2, 3};  // two leaves stay empty
  CHECK(pointer_of(tree, 8) == "accepted");
  tree.fat_tree_down = {3, 1};
  CHECK(pointer_of(tree, 8) == "/cluster/fat_tree/down");
  tree.fat_tree_up = {1};
  CHECK(pointer_of(tree, 8) == "/cluster/fat_tree");
  ClusterSpec dragonfly = two_by_four();
  dragonfly.topology = ClusterSpec::Topology::kDragonfly;
  dragonfly.dragonfly_groups = 3;
  dragonfly.dragonfly_chassis = 2;
  dragonfly.dragonfly_routers = 2;  // none of which leads to the third group
  dragonfly.dragonfly_nodes = 2;
  CHECK(pointer_of(dragonfly, 8) == "/cluster/dragonfly/routers");
  dragonfly.dragonfly_routers = 3;
  CHECK(pointer_of(dragonfly, 8) == "accepted");
  ClusterSpec dead = two_by_four();
  dead.inter_node.bandwidth = {0};
  CHECK(pointer_of(dead, 8) == "/cluster/inter_node");
}

TEST_CASE("a second simulation at the same time is refused") {
  const SimEngine engine;
  CHECK_THROWS_WITH(SimEngine(), contains("a simulation is under way in this process"));
}
