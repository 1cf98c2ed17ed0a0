// What must hold between simulated times, whatever the numbers; and that a thousand ranks fit.

#include <cstddef>
#include <vector>

#include "tests/sim/sim_support.hpp"
#include "tests/support/catch.hpp"

using namespace gradsync;
using namespace gradsync::test;

namespace {

ClusterSpec nodes_of(int gpus_per_node, double intra_bandwidth, double inter_bandwidth) {
  ClusterSpec cluster;
  cluster.gpus_per_node = gpus_per_node;
  cluster.intra_node = {{intra_bandwidth}, Seconds(1e-6)};
  cluster.inter_node = {{inter_bandwidth}, Seconds(5e-6)};
  return cluster;
}

}  // namespace

TEST_CASE("more bytes, more latency or less bandwidth never make a ring faster") {
  for (const Fidelity fidelity : {Fidelity::kMessage, Fidelity::kFlow}) {
    double last = 0;
    for (const std::int64_t elements : {1, 10, 1'000, 100'000, 1'000'000, 10'000'000}) {
      const double time = allreduce_time(one_switch(4), 4, elements, fidelity).count();
      CHECK(time >= last);
      last = time;
    }
    last = 0;
    for (const double latency : {0.0, 1e-6, 1e-5, 1e-3}) {
      const double time =
          allreduce_time(one_switch(4, Seconds(latency)), 4, 100'000, fidelity).count();
      CHECK(time > last);
      last = time;
    }
    last = 0;
    for (const double bandwidth : {400e9, 25e9, 1e9, 1e6}) {
      const double time =
          allreduce_time(one_switch(4, Seconds(1e-6), bandwidth), 4, 100'000, fidelity).count();
      CHECK(time > last);
      last = time;
    }
    last = 0;
    for (const int ranks : {2, 3, 5, 8, 13}) {
      const double time = allreduce_time(one_switch(ranks), ranks, 1'000'000, fidelity).count();
      CHECK(time > last);
      last = time;
    }
  }
}

TEST_CASE("across nodes the slowest hop sets the ring's pace, in both fidelities") {
  // 4 nodes of 4: 12 hops inside nodes, 4 between them. 2(n-1) steps of 12 us + c / 1 GB/s.
  constexpr int kRanks = 16;
  constexpr std::int64_t kElements = 4'000'000;
  const ClusterSpec cluster = nodes_of(4, 50e9, 1e9);
  const double expected = 2 * (kRanks - 1) * (12e-6 + 4.0 * kElements / kRanks / 1e9);
  const double message = allreduce_time(cluster, kRanks, kElements, Fidelity::kMessage).count();
  const double flow = allreduce_time(cluster, kRanks, kElements, Fidelity::kFlow).count();
  CHECK(message == Approx(expected).epsilon(0.01));
  CHECK(flow == Approx(expected).epsilon(0.01));
}

TEST_CASE("a rank that is late delays the whole ring by as much") {
  constexpr int kRanks = 6;
  constexpr std::int64_t kElements = 600'000;
  for (const Fidelity fidelity : {Fidelity::kMessage, Fidelity::kFlow}) {
    const double alone = allreduce_time(one_switch(kRanks), kRanks, kElements, fidelity).count();
    for (const int late : {0, 3, 5}) {
      const RunOutcome outcome =
          simulate(one_switch(kRanks), kRanks, with_fidelity(fidelity),
                   [&](const RankRuntime& runtime, RankReport& report) {
                     if (report.rank == late) runtime.clock->advance(Seconds(1));
                     runtime.process_group->allreduce(meta(kElements), ReduceOp::kSum, {})->wait();
                   });
      CHECK(outcome.simulated->count() == Approx(1 + alone).epsilon(1e-6));
      for (const RankReport& report : outcome.reports) {
        CHECK(report.flight[0].completed.count() > 1);
      }
    }
  }
}

TEST_CASE("two all-reduces at once take twice as long as one, on a network that they fill") {
  constexpr std::int64_t kElements = 10'000'000;
  for (const Fidelity fidelity : {Fidelity::kMessage, Fidelity::kFlow}) {
    SimulationOptions options = with_fidelity(fidelity);
    options.communication_threads = 2;
    const ClusterSpec cluster = one_switch(4, Seconds(0));
    const RunOutcome outcome =
        simulate(cluster, 4, options, [&](const RankRuntime& runtime, RankReport&) {
          ProcessGroup& group = *runtime.process_group;
          const WorkPtr a = group.allreduce(meta(kElements), ReduceOp::kSum, {});
          const WorkPtr b = group.allreduce(meta(kElements), ReduceOp::kSum, {});
          a->wait();
          b->wait();
        });
    const double one = allreduce_time(cluster, 4, kElements, fidelity).count();
    CHECK(outcome.simulated->count() == Approx(2 * one).epsilon(1e-6));
  }
}

TEST_CASE("auto simulates messages for few ranks and flows for many, and says so") {
  const auto note = [](int ranks, Fidelity fidelity) {
    return simulate(one_switch(ranks), ranks, with_fidelity(fidelity),
                    [](const RankRuntime&, RankReport&) {})
        .notes.at(0);
  };
  CHECK(note(16, Fidelity::kAuto) == "fidelity message (auto: 16 ranks; message up to 16)");
  CHECK(note(17, Fidelity::kAuto) == "fidelity flow (auto: 17 ranks; message up to 16)");
  CHECK(note(2, Fidelity::kFlow) == "fidelity flow");
  CHECK(note(17, Fidelity::kMessage) == "fidelity message");
}

TEST_CASE("a thousand ranks of a replayed model fit in a few hundred megabytes") {
  constexpr int kRanks = 1024;
  const RunOutcome outcome = simulate(
      nodes_of(8, 300e9, 25e9), kRanks, with_fidelity(Fidelity::kAuto),
      [](const RankRuntime& runtime, RankReport&) {
        for (int step = 0; step < 2; ++step) {
          std::vector<WorkPtr> works;
          for (int bucket = 0; bucket < 5; ++bucket) {
            runtime.clock->advance(Seconds(5e-3));
            works.push_back(runtime.process_group->allreduce(meta(6'553'600), ReduceOp::kSum, {}));
          }
          for (const WorkPtr& work : works) work->wait();
        }
        runtime.process_group->shutdown();
      });
  for (const RankReport& report : outcome.reports) REQUIRE(report.state == RankState::kFinished);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  CHECK(outcome.peak_rss_bytes < 500'000'000);
#endif
}

TEST_CASE("a rank that computes has the stack for it") {
  constexpr std::size_t kUsed = 3 * 1024 * 1024;
  SimulationOptions options;
  options.stack_bytes = SimulationOptions::kComputeStackBytes;
  const RunOutcome outcome =
      simulate(one_switch(2), 2, options, [](const RankRuntime& runtime, RankReport&) {
        volatile std::byte buffer[kUsed];
        for (std::size_t i = 0; i < kUsed; i += 512) buffer[i] = std::byte{1};
        runtime.process_group->barrier({})->wait();
        std::size_t sum = 0;
        for (std::size_t i = 0; i < kUsed; i += 512) {
          sum += static_cast<std::size_t>(buffer[i]);
        }
        CHECK(sum == kUsed / 512);
      });
  for (const RankReport& report : outcome.reports) CHECK(report.state == RankState::kFinished);
}
