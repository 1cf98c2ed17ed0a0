// How a rank ends: killed inside a wait, with an error of its own, after a shutdown that failed.

#include "gradsync/autograd/parameter_hash.hpp"
#include "gradsync/comm/comm_error.hpp"
#include "gradsync/testbed/rank/rank_main.hpp"
#include "gradsync/testbed/result/run_result.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/train_ranks.hpp"

namespace gradsync {
namespace {

using test::tiny_scenario;
using test::train_ranks;

/// What the simulator throws to end a blocked actor: no std::exception.
struct ActorKilled {};

/// Test double: a group in which every wait ends the rank, as the simulator does in a deadlock.
class KillingGroup final : public ProcessGroup {
 public:
  explicit KillingGroup(Clock& clock, std::int64_t lives)
      : ProcessGroup(0, 1, "default_pg", clock, std::make_shared<FlightRecorder>()),
        lives_(lives) {}
  std::string backend_name() const override { return "killing"; }
  void shutdown() override {
    if (lives_-- <= 0) throw ActorKilled{};
  }

 protected:
  class KillingWork final : public Work {
   public:
    void wait() override { throw ActorKilled{}; }
    bool is_completed() const override { return false; }
  };
  WorkPtr next(const CollectiveRecord& record) {
    flight_recorder().start(record.group, record.sequence, clock().now());
    if (lives_-- <= 0) return std::make_shared<KillingWork>();
    flight_recorder().complete(record.group, record.sequence, clock().now());
    return completed_work();
  }
  WorkPtr do_allreduce(Tensor, ReduceOp, const CollectiveRecord& r) override { return next(r); }
  WorkPtr do_broadcast(Tensor, int, const CollectiveRecord& r) override { return next(r); }
  WorkPtr do_allgather(Tensor output, Tensor input, const CollectiveRecord& r) override {
    output.device().copy(output, input);
    return next(r);
  }
  WorkPtr do_barrier(const CollectiveRecord& r) override { return next(r); }

 private:
  std::int64_t lives_;
};

TEST_CASE("run_rank: a rank that is ended inside any of its waits leaves a readable report") {
  Scenario scenario = tiny_scenario();
  scenario.ranks = 1;
  scenario.train.max_steps = 2;
  bool finished = false;
  for (std::int64_t lives = 0; !finished; ++lives) {
    test::FakeClock clock;
    KillingGroup group(clock, lives);
    RankReport report;
    bool killed = false;
    try {
      run_rank(scenario, {&group, &clock, &cpu_device(), nullptr, {}}, report);
    } catch (const ActorKilled&) {
      killed = true;
    }
    CAPTURE(lives);
    finished = report.state == RankState::kFinished;
    if (finished && !killed) {
      CHECK(report.steps_completed == 2);
      break;
    }
    CHECK(killed);
    if (finished) {
      CHECK(report.phase == Phase::kShutdown);
      finished = false;
      continue;
    }
    CHECK(report.state == RankState::kRunning);
    CHECK_FALSE(report.error_code.has_value());
    REQUIRE_FALSE(report.flight.empty());
    CHECK(report.flight.back().state == CollectiveState::kStarted);
    CHECK(static_cast<std::int64_t>(report.collectives.size()) == lives);
    const auto found = diagnose({report}, scenario);
    REQUIRE(found.has_value());
    CHECK(found->table[0].state == "blocked");
  }
}

/// Test double: a group of one rank whose shutdown fails.
class FailingShutdown final : public ProcessGroup {
 public:
  FailingShutdown(Clock& clock, ErrorCode code)
      : ProcessGroup(0, 1, "default_pg", clock, std::make_shared<FlightRecorder>()), code_(code) {}
  std::string backend_name() const override { return "failing"; }
  void shutdown() override { throw Error(code_, "rank 0: shutdown"); }

 protected:
  WorkPtr done(const CollectiveRecord& record) {
    flight_recorder().complete(record.group, record.sequence, clock().now());
    return completed_work();
  }
  WorkPtr do_allreduce(Tensor, ReduceOp, const CollectiveRecord& r) override { return done(r); }
  WorkPtr do_broadcast(Tensor, int, const CollectiveRecord& r) override { return done(r); }
  WorkPtr do_allgather(Tensor output, Tensor input, const CollectiveRecord& r) override {
    output.device().copy(output, input);
    return done(r);
  }
  WorkPtr do_barrier(const CollectiveRecord& r) override { return done(r); }

 private:
  ErrorCode code_;
};

TEST_CASE("run_rank: what happens to others during shutdown does not undo a finished rank") {
  Scenario scenario = tiny_scenario();
  scenario.ranks = 1;
  scenario.train.max_steps = 1;
  test::FakeClock clock;
  for (ErrorCode code : {ErrorCode::kTimeout, ErrorCode::kPeerFailed, ErrorCode::kRankDied}) {
    FailingShutdown group(clock, code);
    RankReport report;
    run_rank(scenario, {&group, &clock, &cpu_device(), nullptr, {}}, report);
    CHECK(report.state == RankState::kFinished);
    CHECK(report.error_code == code);
    CHECK(report.error == "rank 0: shutdown");
  }
  FailingShutdown group(clock, ErrorCode::kInternal);
  RankReport report;
  CHECK_THROWS_AS(run_rank(scenario, {&group, &clock, &cpu_device(), nullptr, {}}, report), Error);
  CHECK(report.state == RankState::kFailed);
}

TEST_CASE("run_rank: an error of the rank's own is in its report and thrown") {
  Scenario scenario = tiny_scenario();
  scenario.ranks = 1;
  scenario.optimizer.options = AdamWOptions{.lr = -1};
  test::FakeClock clock;
  FailingShutdown group(clock, ErrorCode::kTimeout);
  RankReport report;
  CHECK_THROWS_AS(run_rank(scenario, {&group, &clock, &cpu_device(), nullptr, {}}, report), Error);
  CHECK(report.state == RankState::kFailed);
  CHECK(report.error_code == ErrorCode::kMisuse);
  CHECK(report.phase == Phase::kInit);
  const auto found = diagnose({report}, scenario);
  CHECK(found->kind == DiagnosisKind::kError);
  CHECK(found->because == report.error);
}

}  // namespace
}  // namespace gradsync
