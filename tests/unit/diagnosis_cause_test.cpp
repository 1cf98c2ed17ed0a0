// Which of several failures is the cause: errors, signals, collectives and parameters that differ.
#include <algorithm>
#include <cmath>

#include "gradsync/testbed/diagnosis/diagnosis.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/hand_made_reports.hpp"

namespace gradsync {
namespace {

using test::contains;
using test::HandMadeRank;

TEST_CASE("diagnosis: an error that every rank has is nobody's consequence") {
  Scenario scenario;
  scenario.ranks = 3;
  const auto report = [](int rank, const std::string& what, double at) {
    RankReport failed = HandMadeRank(rank, 3)
                            .shard(1024, 256, 8)
                            .fails(ErrorCode::kInvalidConfig,
                                   "rank " + std::to_string(rank) + ", init: " + what, at);
    failed.phase = Phase::kInit;
    return failed;
  };
  const std::string same = "/optimizer/lr: expected a number";
  const auto everywhere =
      diagnose({report(0, same, 3), report(1, same, 1), report(2, same, 2)}, scenario);
  REQUIRE(everywhere.has_value());
  CHECK(everywhere->kind == DiagnosisKind::kError);
  CHECK(everywhere->ranks == std::vector<int>{0, 1, 2});
  CHECK(everywhere->because == "rank 0, init: " + same);
  CHECK(everywhere->first_cause == "every rank failed in init");
  CHECK_THAT(everywhere->fix, contains("wrong on every rank"));
  CHECK(everywhere->notes.empty());

  const auto different =
      diagnose({report(0, same, 3), report(1, "out of memory", 1), report(2, same, 2)}, scenario);
  REQUIRE(different.has_value());
  CHECK(different->ranks == std::vector<int>{1});
  CHECK_THAT(different->fix, contains("rank 1's error; the other ranks failed because of it"));
}

TEST_CASE("diagnosis: a rank killed by a signal is the cause, the others its victims") {
  Scenario scenario;
  scenario.ranks = 4;
  std::vector<RankReport> reports;
  for (int rank : {0, 1, 3}) {
    reports.push_back(HandMadeRank(rank, 4)
                          .shard(1024, 256, 8)
                          .steps(3)
                          .blocked()
                          .fails(ErrorCode::kRankDied, "rank 2 died (signal 9)", 4.0 + rank));
  }
  RankReport dead;
  dead.rank = 2;
  SECTION("its launcher saw how it ended") {
    dead.exit_signal = 9;
    dead.ended = Seconds{3.6};
    reports.push_back(dead);
    const auto found = diagnose(reports, scenario);
    REQUIRE(found.has_value());
    CHECK(found->verdict == "crash");
    CHECK(found->kind == DiagnosisKind::kRankDied);
    CHECK(found->ranks == std::vector<int>{2});
    CHECK(found->step == 3);
    CHECK(found->because == "the process of rank 2 was ended by signal 9 (SIGKILL)");
    CHECK_THAT(found->first_symptom, contains("ranks 0-1, 3 wait in allreduce #6"));
    REQUIRE(found->table.size() == 2);
    CHECK(found->table[1].state == "died");
    CHECK(found->table[1].detail == "signal 9 (SIGKILL)");
    CHECK(found->table[1].since == Seconds{3.6});
    CHECK_FALSE(found->table[1].steps_completed.has_value());  // nobody knows
  }
  SECTION("nobody watched: the rank that left no report") {
    const auto found = diagnose(reports, scenario);
    REQUIRE(found.has_value());
    CHECK(found->kind == DiagnosisKind::kRankDied);
    CHECK(found->ranks == std::vector<int>{2});
    CHECK(found->because == "the process of rank 2 was ended by signal 9 (SIGKILL)");
  }
  SECTION("a rank that was told to end, and said so before it went") {
    reports.push_back(HandMadeRank(2, 4)
                          .shard(1024, 256, 8)
                          .steps(3)
                          .blocked()
                          .fails(ErrorCode::kRankDied, "rank 2: was ended by signal 15", 3.6));
    reports.back().exit_code = 143;
    CHECK(diagnose(reports, scenario)->because ==
          "the process of rank 2 was ended by signal 15 (SIGTERM)");
    // Under a launcher that tells nothing, the first to speak is believed.
    reports.back().exit_code.reset();
    const auto found = diagnose(reports, scenario);
    CHECK(found->kind == DiagnosisKind::kRankDied);
    CHECK(found->because == "rank 2: was ended by signal 15");
  }
  SECTION("one that the launcher ended afterwards is not a cause") {
    dead.exit_signal = 9;
    dead.ended = Seconds{3.6};
    reports.push_back(dead);
    reports[1].state = RankState::kRunning;
    reports[1].error_code = ErrorCode::kPeerFailed;
    reports[1].exit_signal = 15;
    reports[1].ended = Seconds{9};
    CHECK(diagnose(reports, scenario)->ranks == std::vector<int>{2});
  }
}

TEST_CASE("diagnosis: the first error by time is the cause, whatever the order of the reports") {
  Scenario scenario;
  scenario.ranks = 3;
  std::vector<RankReport> reports{
      HandMadeRank(0, 3).steps(1).blocked().fails(ErrorCode::kPeerFailed, "rank 1 failed", 2.2),
      HandMadeRank(1, 3).steps(1).fails(ErrorCode::kInternal, "rank 1: out of memory", 1.4),
      HandMadeRank(2, 3).steps(1).fails(ErrorCode::kInternal, "rank 2: teardown went wrong", 2.9)};
  reports[1].phase = Phase::kForward;
  for (int turn = 0; turn < 3; ++turn) {
    std::rotate(reports.begin(), reports.begin() + 1, reports.end());
    const auto found = diagnose(reports, scenario);
    REQUIRE(found.has_value());
    CHECK(found->verdict == "crash");
    CHECK(found->kind == DiagnosisKind::kError);
    CHECK(found->ranks == std::vector<int>{1});
    CHECK(found->step == 1);
    CHECK(found->because == "rank 1: out of memory");
    CHECK(found->first_cause == "rank 1 failed in step 1 (forward)");
    CHECK_THAT(found->first_symptom, contains("rank 0 waits in allreduce #2"));
    CHECK(found->consequences == std::vector<std::string>{"the errors of rank 0 follow from it"});
    CHECK(found->notes == std::vector<std::string>{"rank 2 failed too, later"});
  }
}

TEST_CASE(
    "diagnosis: an error comes before the timeouts that it causes, a death after a timeout does "
    "not") {
  Scenario scenario;
  scenario.ranks = 2;
  std::vector<RankReport> reports{
      HandMadeRank(0, 2).steps(1).blocked().fails(ErrorCode::kTimeout, "timed out", 30),
      HandMadeRank(1, 2).steps(1).fails(ErrorCode::kMisuse, "rank 1: no", 1.5)};
  CHECK(diagnose(reports, scenario)->kind == DiagnosisKind::kError);

  // Rank 1 hung outside any collective; the launcher ended it after rank 0's timeout.
  reports[1] = HandMadeRank(1, 2).steps(1);
  reports[1].phase = Phase::kData;
  reports[1].exit_signal = 9;
  reports[1].ended = Seconds{35};
  const auto found = diagnose(reports, scenario);
  CHECK(found->verdict == "deadlock");
  CHECK(found->kind == DiagnosisKind::kUnknown);
  CHECK(found->ranks == std::vector<int>{1});
  CHECK(found->because ==
        "rank 1 has not entered the collective in which the others wait: rank 1 died in data, "
        "step 1");
}

TEST_CASE("diagnosis: the majority is right about a collective that differs, and a tie is a tie") {
  Scenario scenario;
  scenario.ranks = 4;
  std::vector<RankReport> reports;
  for (int rank = 0; rank < 4; ++rank) {
    HandMadeRank made(rank, 4);
    made.steps(1).blocked();
    if (rank == 0) made.report().flight[2].elements = 1025;
    reports.push_back(made.fails(ErrorCode::kDesync, "not the same", 2));
  }
  auto found = diagnose(reports, scenario);
  REQUIRE(found.has_value());
  CHECK(found->verdict == "desync");
  CHECK(found->kind == DiagnosisKind::kPayloadDiffers);
  CHECK(found->catalog == "K23");
  CHECK(found->ranks == std::vector<int>{0});  // not the three healthy ones
  CHECK(found->step == 1);
  CHECK(found->bucket == 0);
  CHECK_THAT(found->collective, contains("of 1025 float32 elements"));
  CHECK(found->because ==
        "collective #2 has another payload on rank 0: ranks 1-3 issued allreduce (sum) "
        "of 4 float32 elements, step 1 (epoch 0), bucket 0 (gradients); rank 0 issued allreduce "
        "(sum) of 1025 float32 elements, step 1 (epoch 0), bucket 0 (gradients)");

  reports[1].flight[2].elements = 1025;
  found = diagnose(reports, scenario);
  CHECK(found->ranks == std::vector<int>{0, 1, 2, 3});
  REQUIRE_FALSE(found->notes.empty());
  CHECK_THAT(found->notes.back(), contains("equally large"));
}

TEST_CASE("diagnosis: a disagreement found before the first collective keeps its error") {
  Scenario scenario;
  scenario.ranks = 2;
  const std::string what = "rank 1: parameter 3 is head.bias [7] here and head.bias [8] on rank 0";
  const auto found = diagnose({HandMadeRank(0, 2).fails(ErrorCode::kDesync, what, 1),
                               HandMadeRank(1, 2).fails(ErrorCode::kDesync, what, 1)},
                              scenario);
  REQUIRE(found.has_value());
  CHECK(found->verdict == "desync");
  CHECK(found->kind == DiagnosisKind::kMismatch);
  CHECK(found->because == what);
}

TEST_CASE("diagnosis: parameters that differ are found although every rank finished") {
  Scenario scenario;
  scenario.ranks = 3;
  std::vector<RankReport> reports{
      HandMadeRank(0, 3).steps(3).finishes(),
      HandMadeRank(1, 3).steps(1).step(0, "other").step(0, "x").finishes(),
      HandMadeRank(2, 3).steps(3).finishes()};
  auto found = diagnose(reports, scenario);
  REQUIRE(found.has_value());
  CHECK(found->verdict == "silent divergence");
  CHECK(found->kind == DiagnosisKind::kParametersDiffer);
  CHECK(found->ranks == std::vector<int>{1});
  CHECK(found->step == 1);
  CHECK_THAT(
      found->because,
      contains("after step 1 (epoch 0): ranks 0, 2 have hash hash-1; rank 1 has hash other"));
  REQUIRE(found->notes.size() == 1);
  CHECK_THAT(found->notes[0], contains("are equal in that step"));

  StepRecord& step = reports[1].steps[1];
  const StepRecord before = step;
  step.grad_norm = 0.25;
  CHECK_THAT(diagnose(reports, scenario)->notes[0], contains("gradient norms differ"));
  // What an update is made of, one after the other.
  step = before;
  step.learning_rate = 1e-4;
  CHECK(diagnose(reports, scenario)->kind == DiagnosisKind::kLearningRateDiffers);
  step = before;
  step.clip_coefficient = 0.5;
  CHECK(diagnose(reports, scenario)->kind == DiagnosisKind::kClipDiffers);
  step = before;
  step.loss_scale = 2;
  CHECK(diagnose(reports, scenario)->kind == DiagnosisKind::kLossScaleDiffers);
  step = before;
  step.last_batch_reduced = false;
  CHECK(diagnose(reports, scenario)->kind == DiagnosisKind::kNoSyncDiffers);
  CHECK(diagnose(reports, scenario)->ranks == std::vector<int>{1});
}

TEST_CASE("diagnosis: a norm that was summed over the ranks again is found by its own numbers") {
  Scenario scenario;
  scenario.ranks = 2;
  std::vector<RankReport> reports{HandMadeRank(0, 2).steps(3).finishes(),
                                  HandMadeRank(1, 2).steps(3).finishes()};
  // As measured in the report: the gradients' norm is 0.8, and the limit 1.
  for (RankReport& report : reports) {
    StepRecord& step = report.steps[1];
    step.grad_norm = 0.8;
    step.clip_norm = std::sqrt(2 * 0.8 * 0.8);
    step.clip_coefficient = 1 / *step.clip_norm;
  }
  const auto found = diagnose(reports, scenario);
  REQUIRE(found.has_value());
  CHECK(found->kind == DiagnosisKind::kNormReducedTwice);
  CHECK(found->verdict == "silent divergence");
  CHECK(found->ranks == std::vector<int>{0, 1});
  CHECK(found->step == 1);
  CHECK_THAT(found->because, contains("norm of 1.131371, the gradients' is 0.800000"));
  CHECK_THAT(found->because, contains("scaled to 0.707107"));
}

TEST_CASE("diagnosis: of two sides that are equally large, one has a collective more") {
  Scenario scenario;
  scenario.ranks = 2;
  scenario.model.kind = ModelSpec::Kind::kTransformer;
  std::vector<RankReport> reports{HandMadeRank(0, 2).fails(ErrorCode::kDesync, "differs", 1),
                                  HandMadeRank(1, 2).fails(ErrorCode::kDesync, "differs", 1)};
  CollectiveRecord record;
  record.op = OpType::kAllreduce;
  record.elements = 8;
  record.label.step = 1;
  record.label.phase = Phase::kBackward;
  record.label.what = "gradients";
  reports[1].flight = {record};
  record.label.what = "metric";
  reports[0].flight = {record};
  const auto found = diagnose(reports, scenario);
  REQUIRE(found.has_value());
  CHECK(found->kind == DiagnosisKind::kExtraCollective);
  CHECK(found->ranks == std::vector<int>{0});
  CHECK_THAT(found->notes.back(), contains("equally large"));
}

}  // namespace
}  // namespace gradsync
