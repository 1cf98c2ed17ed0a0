// What the ranks of a simulated job see when one of them does not do its part.

#include <stdexcept>
#include <string>
#include <vector>

#include "gradsync/comm/comm_error.hpp"
#include "tests/sim/sim_support.hpp"
#include "tests/support/catch.hpp"

using namespace gradsync;
using namespace gradsync::test;

namespace {

WorkPtr allreduce(const RankRuntime& runtime, std::int64_t elements, const std::string& what) {
  return runtime.process_group->allreduce(meta(elements), ReduceOp::kSum, labelled(what));
}

const RankReport& report_of(const RunOutcome& outcome, int rank) {
  return outcome.reports.at(static_cast<std::size_t>(rank));
}

}  // namespace

TEST_CASE("a deadlock is found at the instant at which nothing can move any more") {
  for (const Fidelity fidelity : {Fidelity::kMessage, Fidelity::kFlow}) {
    // Rank 2 leaves after one all-reduce, as with uneven shards; the others want a second one.
    // Rank 1 still computes for 0.25 s before it gets there: that is when the job is stuck.
    const RunOutcome outcome = simulate(one_switch(3), 3, with_fidelity(fidelity),
                                        [&](const RankRuntime& runtime, RankReport& report) {
                                          allreduce(runtime, 1000, "first")->wait();
                                          report.steps_completed = 1;
                                          if (report.rank == 2) {
                                            report.phase = Phase::kShutdown;
                                            runtime.process_group->shutdown();
                                            return;
                                          }
                                          if (report.rank == 1)
                                            runtime.clock->advance(Seconds(0.25));
                                          report.phase = Phase::kBackward;
                                          const WorkPtr work = allreduce(runtime, 2000, "second");
                                          work->wait();
                                          report.steps_completed = 2;  // never
                                        });
    CHECK(outcome.simulated->count() == Approx(0.25).margin(1e-3));
    for (const RankReport& report : outcome.reports) {
      CHECK(report.state == RankState::kRunning);
      CHECK(report.error.empty());
      CHECK(report.steps_completed == 1);
      CHECK(report.ended == *outcome.simulated);
    }
    REQUIRE(report_of(outcome, 0).flight.size() == 2);
    const CollectiveRecord& stuck = report_of(outcome, 0).flight[1];
    CHECK(stuck.state == CollectiveState::kStarted);
    CHECK(stuck.label.what == "second");
    CHECK(stuck.elements == 2000);
    CHECK(report_of(outcome, 1).flight[1].started.count() == Approx(0.25).margin(1e-3));
    CHECK(report_of(outcome, 2).flight.size() == 1);
    CHECK(report_of(outcome, 2).phase == Phase::kShutdown);
  }
}

TEST_CASE("a deadlock comes before the timeout, and unwinds the ranks' stacks") {
  int unwound = 0;
  struct Guard {
    int* count;
    ~Guard() { ++*count; }
  };
  SimulationOptions options;
  options.timeout = Seconds(30);
  const RunOutcome outcome =
      simulate(one_switch(2), 2, options, [&](const RankRuntime& runtime, RankReport& report) {
        const Guard guard{&unwound};
        if (report.rank == 0) allreduce(runtime, 1000, "alone")->wait();
      });
  CHECK(outcome.simulated->count() == 0.0);
  CHECK(unwound == 2);
  CHECK(report_of(outcome, 0).state == RankState::kRunning);
  CHECK(report_of(outcome, 1).state == RankState::kFinished);
}

TEST_CASE("a wait that lasts longer than the timeout ends the job, and names the collective") {
  SimulationOptions options;
  options.timeout = Seconds(30);
  const RunOutcome outcome =
      simulate(one_switch(3), 3, options, [](const RankRuntime& runtime, RankReport& report) {
        // Rank 2 is alive: it saves a checkpoint for 700 s.
        if (report.rank == 1) runtime.clock->advance(Seconds(5));
        if (report.rank == 2) runtime.clock->advance(Seconds(700));
        allreduce(runtime, 1, "loss")->wait();
      });
  const RankReport& first = report_of(outcome, 0);
  CHECK(first.state == RankState::kFailed);
  CHECK(first.error_code == ErrorCode::kTimeout);
  CHECK(first.ended.count() == Approx(30));
  CHECK_THAT(first.error, contains("rank 0: allreduce #0 of 1 float32 elements") &&
                              contains("(loss)") && contains("timed out after 30s"));
  REQUIRE(first.failed_collective.has_value());
  CHECK(first.failed_collective->label.what == "loss");
  REQUIRE(first.flight.size() == 1);
  CHECK(first.flight[0].state == CollectiveState::kFailed);
  // Rank 1 would have waited until 35 s; it learns of it at once. Rank 2 when it is back.
  CHECK(report_of(outcome, 1).error_code == ErrorCode::kPeerFailed);
  CHECK(report_of(outcome, 1).ended.count() == Approx(30));
  CHECK_THAT(report_of(outcome, 1).error, contains("timed out after 30s"));
  CHECK(report_of(outcome, 2).error_code == ErrorCode::kPeerFailed);
  CHECK(report_of(outcome, 2).ended.count() == Approx(700));
}

TEST_CASE("waits shorter than the timeout are not disturbed by it") {
  SimulationOptions options;
  options.timeout = Seconds(1);
  const RunOutcome outcome =
      simulate(one_switch(2), 2, options, [](const RankRuntime& runtime, RankReport& report) {
        for (int step = 0; step < 10; ++step) {
          if (report.rank == step % 2) runtime.clock->advance(Seconds(0.9));
          allreduce(runtime, 1000, "gradients")->wait();
        }
        runtime.process_group->shutdown();
      });
  for (const RankReport& report : outcome.reports) {
    CHECK(report.error.empty());
    CHECK(report.state == RankState::kFinished);
  }
  CHECK(outcome.simulated->count() == Approx(9).margin(0.1));
}

TEST_CASE("a rank that throws ends the others at the same simulated instant") {
  for (const Fidelity fidelity : {Fidelity::kMessage, Fidelity::kFlow}) {
    const RunOutcome outcome = simulate(one_switch(4), 4, with_fidelity(fidelity),
                                        [](const RankRuntime& runtime, RankReport& report) {
                                          allreduce(runtime, 1000, "first")->wait();
                                          if (report.rank == 1) {
                                            runtime.clock->advance(Seconds(2));
                                            throw std::runtime_error("CUDA out of memory");
                                          }
                                          if (report.rank == 3) runtime.clock->advance(Seconds(5));
                                          allreduce(runtime, 1000, "second")->wait();
                                        });
    CHECK(report_of(outcome, 1).state == RankState::kFailed);
    CHECK(report_of(outcome, 1).error == "CUDA out of memory");
    CHECK(report_of(outcome, 1).error_code == ErrorCode::kInternal);
    for (const int victim : {0, 2, 3}) {
      const RankReport& report = report_of(outcome, victim);
      CHECK(report.state == RankState::kFailed);
      CHECK(report.error_code == ErrorCode::kPeerFailed);
      CHECK_THAT(report.error, contains("rank 1 failed: CUDA out of memory"));
      CHECK(report.ended.count() == Approx(victim == 3 ? 5 : 2).margin(1e-3));
    }
    REQUIRE(report_of(outcome, 0).flight.size() == 2);
    CHECK(report_of(outcome, 0).flight[1].state == CollectiveState::kFailed);
    CHECK(report_of(outcome, 0).flight[1].completed.count() == Approx(2).margin(1e-3));
    // Rank 3 issued its second one when the job had failed already.
    CHECK(report_of(outcome, 3).flight[1].state == CollectiveState::kFailed);
  }
}

TEST_CASE("collectives that differ end every rank with both sides named") {
  struct Mismatch {
    std::function<WorkPtr(ProcessGroup&)> odd;
    std::string described;
  };
  const std::vector<Mismatch> mismatches = {
      {[](ProcessGroup& g) { return g.allreduce(meta(8), ReduceOp::kSum, {}); },
       "allreduce (sum) of 8 float32 elements"},
      {[](ProcessGroup& g) { return g.allreduce(meta(4, DType::kInt32), ReduceOp::kSum, {}); },
       "allreduce (sum) of 4 int32 elements"},
      {[](ProcessGroup& g) { return g.allreduce(meta(4), ReduceOp::kMax, {}); },
       "allreduce (max) of 4 float32 elements"},
      {[](ProcessGroup& g) { return g.broadcast(meta(4), 1, {}); },
       "broadcast (root 1) of 4 float32 elements"},
      {[](ProcessGroup& g) { return g.barrier({}); }, "barrier of 0 uint8 elements"},
      {[](ProcessGroup& g) { return g.allreduce(meta(4), ReduceOp::kSum, labelled("loss")); },
       "allreduce (sum) of 4 float32 elements (loss)"},
  };
  for (const Fidelity fidelity : {Fidelity::kMessage, Fidelity::kFlow}) {
    for (const Mismatch& mismatch : mismatches) {
      const RunOutcome outcome = simulate(one_switch(4), 4, with_fidelity(fidelity),
                                          [&](const RankRuntime& runtime, RankReport& report) {
                                            ProcessGroup& group = *runtime.process_group;
                                            allreduce(runtime, 1000, "same")->wait();
                                            if (report.rank == 2) {
                                              mismatch.odd(group)->wait();
                                            } else {
                                              group.allreduce(meta(4), ReduceOp::kSum, {})->wait();
                                            }
                                          });
      for (const RankReport& report : outcome.reports) {
        CHECK(report.state == RankState::kFailed);
        CHECK(report.error_code == ErrorCode::kDesync);
        CHECK_THAT(report.error, contains("collective #1") &&
                                     contains("rank 2 issued " + mismatch.described) &&
                                     contains("allreduce (sum) of 4 float32 elements"));
      }
    }
  }
}

TEST_CASE("shutdown waits for the last rank") {
  std::vector<double> left(3);
  const RunOutcome outcome =
      simulate(one_switch(3), 3, {}, [&](const RankRuntime& runtime, RankReport& report) {
        runtime.clock->advance(Seconds(report.rank));
        runtime.process_group->shutdown();
        left[static_cast<std::size_t>(report.rank)] = runtime.clock->now().count();
      });
  CHECK(left == std::vector<double>{2, 2, 2});
  for (const RankReport& report : outcome.reports) CHECK(report.state == RankState::kFinished);
}

TEST_CASE("shutdown ends with the timeout, or with another rank's failure") {
  SimulationOptions options;
  options.timeout = Seconds(10);
  const RunOutcome slow =
      simulate(one_switch(2), 2, options, [](const RankRuntime& runtime, RankReport& report) {
        if (report.rank == 1) runtime.clock->advance(Seconds(20));
        runtime.process_group->shutdown();
      });
  CHECK(report_of(slow, 0).error_code == ErrorCode::kTimeout);
  CHECK(report_of(slow, 0).ended.count() == Approx(10));
  CHECK_THAT(report_of(slow, 0).error, contains("shutdown"));
  CHECK(report_of(slow, 1).error_code == ErrorCode::kPeerFailed);

  const RunOutcome failed =
      simulate(one_switch(2), 2, options, [](const RankRuntime& runtime, RankReport& report) {
        if (report.rank == 1) throw std::runtime_error("disk full");
        runtime.process_group->shutdown();
      });
  CHECK(report_of(failed, 0).error_code == ErrorCode::kPeerFailed);
  CHECK_THAT(report_of(failed, 0).error, contains("rank 1 failed: disk full"));
}

TEST_CASE("a work that failed throws the same error again, and one that was done stays done") {
  simulate(one_switch(2), 2, {}, [](const RankRuntime& runtime, RankReport& report) {
    const WorkPtr done = allreduce(runtime, 1000, "done");
    done->wait();
    if (report.rank == 1) throw std::runtime_error("gone");
    const WorkPtr failed = allreduce(runtime, 1000, "failed");
    std::vector<std::string> errors;
    for (int i = 0; i < 2; ++i) {
      try {
        failed->wait();
      } catch (const CommError& error) {
        errors.push_back(error.what());
      }
    }
    CHECK(errors.size() == 2);
    CHECK(errors.front() == errors.back());
    CHECK(failed->is_completed());
    CHECK_NOTHROW(done->wait());
  });
}
