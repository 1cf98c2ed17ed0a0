#include "simulator/platform.hpp"

#include <string>

#include "tests/sim/sim_support.hpp"
#include "tests/support/catch.hpp"

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
  std::vector<double> times(ways.size());
  engine.start_actor("sender", platform.host(0), SimulationOptions::kReplayStackBytes, [&] {
    engine.in_kernel([&] {
      for (std::size_t i = 0; i < ways.size(); ++i) {
        engine.transfer(platform.host(ways[i].first), platform.host(ways[i].second), bytes,
                        [&, i] { times[i] = engine.now().count(); });
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

TEST_CASE("a cluster that the ranks do not fit on is refused by its pointer") {
  const auto pointer_of = [](const ClusterSpec& cluster, int ranks) {
    try {
      check_cluster(cluster, ranks);
    } catch (const ConfigError& error) {
      CHECK(error.code() == ErrorCode::kInvalidScenario);
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
  ClusterSpec dead = two_by_four();
  dead.inter_node.bandwidth = {0};
  CHECK(pointer_of(dead, 8) == "/cluster/inter_node");
}

TEST_CASE("a second simulation at the same time is refused") {
  const SimEngine engine;
  CHECK_THROWS_WITH(SimEngine(), contains("a simulation is under way in this process"));
}
