#include <cstdint>
#include <vector>

#include "tests/sim/sim_support.hpp"
#include "tests/support/catch.hpp"

using namespace gradsync;
using namespace gradsync::test;

namespace {

constexpr Seconds kLatency{10e-6};
constexpr double kBandwidth = 1e9;

ClusterSpec cluster_of(int ranks) {
  return one_switch(ranks, kLatency, kBandwidth);
}

/// When each rank had its result, after all issued the same collective at time 0.
std::vector<double> finish_times(int ranks, Fidelity fidelity,
                                 const std::function<WorkPtr(ProcessGroup&)>& issue) {
  std::vector<double> times(static_cast<std::size_t>(ranks));
  const RunOutcome outcome = simulate(cluster_of(ranks), ranks, with_fidelity(fidelity),
                                      [&](const RankRuntime& runtime, RankReport& report) {
                                        issue(*runtime.process_group)->wait();
                                        times[static_cast<std::size_t>(report.rank)] =
                                            runtime.clock->now().count();
                                      });
  for (const RankReport& report : outcome.reports) CHECK(report.error.empty());
  return times;
}

int rounds(int ranks) {
  int count = 0;
  while ((1 << count) < ranks) ++count;
  return count;
}

}  // namespace

TEST_CASE("a broadcast brings the root's data to every rank") {
  for (const Fidelity fidelity : {Fidelity::kMessage, Fidelity::kFlow}) {
    for (const int ranks : {1, 2, 3, 6, 9}) {
      for (int root = 0; root < ranks; ++root) {
        std::vector<std::vector<std::int64_t>> results(static_cast<std::size_t>(ranks));
        simulate(cluster_of(ranks), ranks, with_fidelity(fidelity),
                 [&](const RankRuntime& runtime, RankReport& report) {
                   Tensor tensor = Tensor::from<std::int64_t>({report.rank, 7, -report.rank}, {3});
                   runtime.process_group->broadcast(tensor, root, {})->wait();
                   const auto values = tensor.span<std::int64_t>();
                   results[static_cast<std::size_t>(report.rank)].assign(values.begin(),
                                                                         values.end());
                 });
        for (const auto& result : results) {
          CHECK(result == std::vector<std::int64_t>{root, 7, -root});
        }
      }
    }
  }
}

TEST_CASE("an all-gather brings every rank's slice to every rank, odd sizes too") {
  for (const Fidelity fidelity : {Fidelity::kMessage, Fidelity::kFlow}) {
    for (const int ranks : {1, 2, 3, 8}) {
      for (const std::int64_t elements : {1, 5}) {
        simulate(cluster_of(ranks), ranks, with_fidelity(fidelity),
                 [&](const RankRuntime& runtime, RankReport& report) {
                   std::vector<std::uint8_t> own(static_cast<std::size_t>(elements));
                   for (std::size_t i = 0; i < own.size(); ++i) {
                     own[i] = static_cast<std::uint8_t>(10 * report.rank + static_cast<int>(i));
                   }
                   const Tensor input = Tensor::from<std::uint8_t>(own, {elements});
                   Tensor output = Tensor::zeros({ranks, elements}, DType::kUInt8, cpu_device());
                   runtime.process_group->allgather(output, input, {})->wait();
                   const auto values = output.span<std::uint8_t>();
                   for (int r = 0; r < ranks; ++r) {
                     for (std::int64_t i = 0; i < elements; ++i) {
                       CHECK(values[static_cast<std::size_t>(r * elements + i)] == 10 * r + i);
                     }
                   }
                 });
      }
    }
  }
}

TEST_CASE("a barrier takes ceil(log2 n) latencies") {
  for (const Fidelity fidelity : {Fidelity::kMessage, Fidelity::kFlow}) {
    for (const int ranks : {2, 3, 4, 5, 16, 33}) {
      const auto times =
          finish_times(ranks, fidelity, [](ProcessGroup& group) { return group.barrier({}); });
      for (const double time : times) {
        CHECK(time == Approx(rounds(ranks) * kLatency.count()));
      }
    }
  }
}

TEST_CASE("an all-gather takes (n-1)(alpha + S/beta), S a slice") {
  for (const Fidelity fidelity : {Fidelity::kMessage, Fidelity::kFlow}) {
    for (const int ranks : {2, 5, 16}) {
      const double expected = (ranks - 1) * (kLatency.count() + 4e6 / kBandwidth);
      const auto times = finish_times(ranks, fidelity, [&](ProcessGroup& group) {
        return group.allgather(Tensor::empty({ranks, 1'000'000}, DType::kFloat32, meta_device()),
                               meta(1'000'000), {});
      });
      for (const double time : times) CHECK(time == Approx(expected));
    }
  }
}

TEST_CASE("the sends of a broadcast's root share its cable") {
  // 4 ranks: rank 0 sends to 1 and 2 at once (2 S/b); rank 1 then sends to 3.
  const auto times = finish_times(4, Fidelity::kMessage, [](ProcessGroup& group) {
    return group.broadcast(meta(1'000'000), 0, {});
  });
  const double transfer = 4e6 / kBandwidth;
  const double first_round = kLatency.count() + 2 * transfer;
  CHECK(times[0] == Approx(first_round));
  CHECK(times[2] == Approx(first_round));
  CHECK(times[3] == Approx(first_round + kLatency.count() + transfer));
}

TEST_CASE("nothing to send, or nobody to send to, takes no time and waits for nobody") {
  for (const Fidelity fidelity : {Fidelity::kMessage, Fidelity::kFlow}) {
    const RunOutcome empty =
        simulate(cluster_of(2), 2, with_fidelity(fidelity),
                 [&](const RankRuntime& runtime, RankReport& report) {
                   if (report.rank == 1) return;
                   runtime.process_group->allreduce(meta(0), ReduceOp::kSum, {})->wait();
                 });
    CHECK(empty.simulated->count() == 0);
    CHECK(empty.reports[0].state == RankState::kFinished);
    for (const auto& issue : std::vector<std::function<WorkPtr(ProcessGroup&)>>{
             [](ProcessGroup& g) { return g.allreduce(meta(1000), ReduceOp::kSum, {}); },
             [](ProcessGroup& g) { return g.broadcast(meta(1000), 0, {}); },
             [](ProcessGroup& g) { return g.allgather(meta(1000), meta(1000), {}); },
             [](ProcessGroup& g) { return g.barrier({}); }}) {
      CHECK(finish_times(1, fidelity, issue) == std::vector<double>{0.0});
    }
  }
}

TEST_CASE("collectives run while the rank computes, and in their order") {
  // Two all-reduces of 1 ms each, issued at 0 while the rank computes for 5 ms.
  constexpr int kRanks = 2;
  constexpr std::int64_t kElements = 250'000;  // 2(n-1)/n * 1e6 bytes at 1 GB/s
  for (const Fidelity fidelity : {Fidelity::kMessage, Fidelity::kFlow}) {
    const RunOutcome outcome =
        simulate(one_switch(kRanks, Seconds(0), kBandwidth), kRanks, with_fidelity(fidelity),
                 [&](const RankRuntime& runtime, RankReport&) {
                   ProcessGroup& group = *runtime.process_group;
                   const WorkPtr first = group.allreduce(meta(kElements), ReduceOp::kSum, {});
                   const WorkPtr second = group.allreduce(meta(kElements), ReduceOp::kSum, {});
                   CHECK(!first->is_completed());
                   runtime.clock->advance(Seconds(5e-3));
                   CHECK(first->is_completed());
                   second->wait();
                   second->wait();
                   first->wait();
                   CHECK(runtime.clock->now().count() == Approx(5e-3));
                 });
    for (const RankReport& report : outcome.reports) {
      CHECK(report.error.empty());
      REQUIRE(report.flight.size() == 2);
      CHECK(report.flight[0].started.count() == 0.0);
      CHECK(report.flight[0].completed.count() == Approx(1e-3));
      CHECK(report.flight[1].issued.count() == 0.0);
      CHECK(report.flight[1].started.count() == Approx(1e-3));
      CHECK(report.flight[1].completed.count() == Approx(2e-3));
      CHECK(report.flight[1].state == CollectiveState::kCompleted);
    }
  }
}

TEST_CASE("with two communication threads two collectives share the network") {
  SimulationOptions options = with_fidelity(Fidelity::kFlow);
  options.communication_threads = 2;
  const RunOutcome outcome =
      simulate(one_switch(2, Seconds(0), kBandwidth), 2, options,
               [&](const RankRuntime& runtime, RankReport&) {
                 ProcessGroup& group = *runtime.process_group;
                 const WorkPtr a = group.allreduce(meta(250'000), ReduceOp::kSum, {});
                 const WorkPtr b = group.allreduce(meta(250'000), ReduceOp::kSum, {});
                 a->wait();
                 b->wait();
               });
  for (const CollectiveRecord& record : outcome.reports[0].flight) {
    CHECK(record.started.count() == 0.0);
    CHECK(record.completed.count() == Approx(2e-3));
  }
}
