// Every algorithm at every fidelity: values, and what is told of the choice.

#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>

#include <fmt/format.h>

#include "tests/sim/algorithm_cases.hpp"
#include "tests/support/paths.hpp"

using namespace gradsync;
using namespace gradsync::test;

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
    const int ranks = name == "2x-pcie.json" ? 2 : 8;  // it has no network, so no other node
    const Scenario scenario = parse_scenario(
        fmt::format(R"({{"backend": "sim", "ranks": {}, "cluster": "clusters/{}"}})", ranks, name),
        "test.json", scenarios.string());
    Case c{"", scenario.cluster, ranks, Algorithm::kAuto};
    c.cluster.nodes = 0;
    const double time = time_of(c, 1'000'000, Fidelity::kFlow);
    CHECK(time > 0);
    c.cluster.inter_node.bandwidth.value *= 2;
    c.cluster.intra_node.bandwidth.value *= 2;
    CHECK(time_of(c, 1'000'000, Fidelity::kFlow) <= time * (1 + 1e-9));
  }
  CHECK(files >= 25);
}
