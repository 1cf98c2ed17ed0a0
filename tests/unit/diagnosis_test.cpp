#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <set>

#include <nlohmann/json.hpp>

#include "gradsync/testbed/diagnosis/diagnosis.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/hand_made_reports.hpp"

namespace gradsync {
namespace {

using test::contains;
using test::HandMadeRank;
using Json = nlohmann::ordered_json;

/// All of a diagnosis but the times in its table.
std::string without_times(const Diagnosis& diagnosis) {
  Json json = to_json(diagnosis);
  for (Json& row : json["table"]) row.erase("since");
  return json.dump(2);
}

TEST_CASE("diagnosis: a run in which every rank finished has none") {
  const std::vector<RankReport> reports{HandMadeRank(0, 2).steps(2).finishes(),
                                        HandMadeRank(1, 2).steps(2).finishes()};
  Scenario scenario;
  scenario.ranks = 2;
  CHECK_FALSE(diagnose(reports, scenario).has_value());
}

TEST_CASE("diagnosis: uneven shards name who ran out, who waits where, why, and the fix") {
  const auto found = diagnose(test::uneven_reports_simulated(), test::uneven_scenario());
  REQUIRE(found.has_value());
  CHECK(found->verdict == "deadlock");
  CHECK(found->kind == DiagnosisKind::kUnevenShards);
  CHECK(found->ranks == std::vector<int>{2, 3});
  CHECK(found->step == 2);
  CHECK(found->bucket == 0);
  CHECK(found->collective ==
        "allreduce #4 of 4 float32 elements, step 2 (epoch 0) backward, bucket 0 (gradients)");
  CHECK(found->because ==
        "ranks 2-3 ran out of data before the others: 10 samples over 4 ranks without padding, "
        "batch size 1: ranks 0-1 have 3 samples, which make 3 steps; ranks 2-3 have 2 samples, "
        "which make 2 steps");
  CHECK(found->fix ==
        "set sampler.pad to true: 3 steps on every rank, 2 samples repeated; or set "
        "sampler.drop_last to true: 2 steps on every rank, 2 of 10 samples are unused; or set "
        "ddp.join.enable to true: ranks that run out then answer the others with zeros, as "
        "PyTorch's Join does");
  CHECK(found->first_cause == "ranks 2-3 had no batch for step 2 (epoch 0)");
  CHECK(found->first_symptom ==
        "ranks 0-1 wait in allreduce #4 of 4 float32 elements, step 2 (epoch 0) backward, bucket 0 "
        "(gradients) with parameters b and c; ranks 2-3 never enter it");
  CHECK(found->notes.empty());

  REQUIRE(found->table.size() == 2);
  CHECK(found->table[0].ranks == std::vector<int>{0, 1});
  CHECK(found->table[0].state == "blocked");
  CHECK(found->table[0].phase == "backward");
  CHECK(found->table[0].blocked_in == found->collective);
  CHECK(found->table[0].since == Seconds{2.5});
  CHECK(found->table[0].steps_completed == 2);
  CHECK(found->table[1].ranks == std::vector<int>{2, 3});
  CHECK(found->table[1].state == "finished");
  CHECK(found->table[1].phase == "shutdown");
  CHECK_THAT(found->table[1].last_completed, contains("allreduce #3"));
}

TEST_CASE("diagnosis: the same failure has the same words in every world") {
  const Scenario scenario = test::uneven_scenario();
  const std::string simulated =
      without_times(*diagnose(test::uneven_reports_simulated(), scenario));
  CHECK(without_times(*diagnose(test::uneven_reports_real(), scenario)) == simulated);

  // The ranks that are done may be the first whose patience ends.
  auto reports = test::uneven_reports_real();
  reports[0].error_code = ErrorCode::kPeerFailed;
  reports[2].error_code = ErrorCode::kTimeout;
  CHECK(without_times(*diagnose(reports, scenario)) == simulated);

  // Times do not show anywhere else.
  for (RankReport& report : reports) {
    for (CollectiveRecord& record : report.flight) record.issued *= 1.7 + report.rank;
    report.phase_since *= 3;
  }
  CHECK(without_times(*diagnose(reports, scenario)) == simulated);
}

TEST_CASE("diagnosis: renumbered ranks give the same verdict, renumbered") {
  const Scenario scenario = test::uneven_scenario();
  std::vector<int> order(4);
  std::iota(order.begin(), order.end(), 0);
  do {
    std::vector<RankReport> reports = test::uneven_reports_real();
    std::vector<int> expected;
    for (std::size_t i = 0; i < reports.size(); ++i) {
      reports[i].rank = order[i];
      if (i >= 2) expected.push_back(order[i]);
    }
    std::sort(expected.begin(), expected.end());
    const auto found = diagnose(reports, scenario);
    REQUIRE(found.has_value());
    CHECK(found->kind == DiagnosisKind::kUnevenShards);
    CHECK(found->ranks == expected);
    CHECK(found->step == 2);
    CHECK(found->bucket == 0);
    CHECK(found->fix == diagnose(test::uneven_reports_real(), scenario)->fix);
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST_CASE("diagnosis: reports of half the ranks give the verdict and say what is missing") {
  const Scenario scenario = test::uneven_scenario();
  auto reports = test::uneven_reports_simulated();
  SECTION("of those that wait: the scenario's arithmetic stands in for the others") {
    reports.resize(2);
  }
  SECTION("and when a blank report stands for a rank that left none") {
    reports[2] = RankReport{};
    reports[2].rank = 2;
    reports[3] = RankReport{};
    reports[3].rank = 3;
  }
  const auto found = diagnose(reports, scenario);
  REQUIRE(found.has_value());
  CHECK(found->kind == DiagnosisKind::kUnevenShards);
  CHECK(found->ranks == std::vector<int>{2, 3});
  REQUIRE(found->notes.size() == 1);
  CHECK_THAT(found->notes[0], contains("no report of ranks 2-3"));
  CHECK(found->table.back().state == "no report");
  CHECK_FALSE(found->table.back().since.has_value());
}

TEST_CASE("diagnosis: no reports at all, and reports of ranks that cannot be, are no crash") {
  const Scenario scenario = test::uneven_scenario();
  const auto nothing = diagnose({}, scenario);
  REQUIRE(nothing.has_value());
  CHECK(nothing->kind == DiagnosisKind::kUnknown);
  RankReport foreign;
  foreign.rank = 2000000000;
  const auto found = diagnose({foreign}, scenario);
  REQUIRE(found.has_value());
  CHECK_THAT(format_text(*found), contains("1 of the reports are of ranks"));
  foreign.rank = -1;
  CHECK(diagnose({foreign}, scenario).has_value());
}

TEST_CASE("diagnosis: uneven shards of given sizes, in batches") {
  Scenario scenario;
  scenario.ranks = 3;
  scenario.data.samples = 100;
  scenario.train.batch_size = 8;
  scenario.sampler.shard_sizes = {17, 40, 9};
  const auto found = diagnose({HandMadeRank(0, 3).shard(100, 17, 3).steps(2).blocked(),
                               HandMadeRank(1, 3).shard(100, 40, 5).steps(2).blocked(),
                               HandMadeRank(2, 3).shard(100, 9, 2).steps(2).finishes()},
                              scenario);
  REQUIRE(found.has_value());
  CHECK(found->kind == DiagnosisKind::kUnevenShards);
  CHECK(found->ranks == std::vector<int>{2});
  CHECK_THAT(
      found->because,
      contains("100 samples over 3 ranks in shards of given sizes, batch size 8: rank 1 has 40 "
               "samples, which make 5 steps; rank 0 has 17 samples, which make 3 steps; rank 2 "
               "has 9 samples, which make 2 steps"));
  CHECK_THAT(found->fix, contains("9 is what the smallest shard has"));
  CHECK_THAT(found->fix, contains("pads the shards to 5 steps"));
}

TEST_CASE("diagnosis: over several epochs uneven shards go wrong before the run stands still") {
  Scenario scenario = test::uneven_scenario();
  scenario.train.epochs = 2;
  const auto rank_of = [](int rank, std::int64_t samples) {
    HandMadeRank made(rank, 4);
    made.shard(10, samples, 2 * samples);
    for (std::int64_t step = 0; step < 4; ++step) made.step(step / samples, "same");
    return made;
  };
  const auto found = diagnose({rank_of(0, 3).blocked(1), rank_of(1, 3).blocked(1),
                               rank_of(2, 2).finishes(), rank_of(3, 2).finishes()},
                              scenario);
  REQUIRE(found.has_value());
  CHECK(found->kind == DiagnosisKind::kUnevenShards);
  CHECK(found->step == 2);  // the first wrong one
  CHECK_THAT(found->collective, contains("step 4 (epoch 1)"));
  CHECK_THAT(found->first_cause, contains("from step 2 on"));
  CHECK_THAT(found->because, contains("in each of 2 epochs"));
  REQUIRE(found->notes.size() == 1);
  CHECK_THAT(found->notes[0], contains("collective #4 did not meet its like"));
}

TEST_CASE("diagnosis: a backend that compares labels shows uneven shards as a desync") {
  Scenario scenario = test::uneven_scenario();
  scenario.train.epochs = 2;
  std::vector<RankReport> reports;
  for (int rank = 0; rank < 4; ++rank) {
    const std::int64_t samples = rank < 2 ? 3 : 2;
    reports.push_back(HandMadeRank(rank, 4)
                          .shard(10, samples, 2 * samples)
                          .steps(2)
                          .blocked(rank < 2 ? 0 : 1)
                          .fails(ErrorCode::kDesync, "not the same", 3));
  }
  const auto found = diagnose(reports, scenario);
  REQUIRE(found.has_value());
  CHECK(found->verdict == "desync");
  CHECK(found->kind == DiagnosisKind::kUnevenShards);
  CHECK(found->ranks == std::vector<int>{2, 3});
  CHECK(found->step == 2);
  CHECK(found->first_cause ==
        "at step 2 ranks 2-3 had no batch left in epoch 0 and went on to the next, ranks 0-1 had "
        "one");
}

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

TEST_CASE("diagnosis: whatever the reports hold, there is an answer and no crash") {
  std::mt19937 random(20240607);
  const auto below = [&](int limit) {
    return static_cast<int>(random() % static_cast<unsigned>(limit));
  };
  std::set<std::string> kinds;
  for (int round = 0; round < 3000; ++round) {
    Scenario scenario = test::uneven_scenario();
    scenario.ranks = 1 + below(5);
    scenario.train.epochs = 1 + below(2);
    scenario.sampler.pad = below(2) == 0;
    if (below(4) == 0) scenario.sampler.shard_sizes = {below(5), below(5), below(5)};
    std::vector<RankReport> reports;
    for (int i = below(6); i > 0; --i) {
      HandMadeRank made(below(6) - below(2), static_cast<int>(scenario.ranks));
      if (below(3) > 0) made.shard(below(12), below(5), below(5));
      for (int steps = below(4); steps > 0; --steps)
        made.step(below(2), below(9) == 0 ? "odd" : "");
      if (below(2) == 0) made.blocked(below(2));
      if (below(4) == 0) made.finishes();
      if (below(2) == 0) {
        made.fails(static_cast<ErrorCode>(below(9)), "error", below(100) / 10.0);
      }
      RankReport& report = made.report();
      report.phase = static_cast<Phase>(below(8));
      if (below(5) == 0) report.exit_signal = below(70);
      if (below(5) == 0) report.exit_code = below(256);
      if (below(5) == 0) report.flight.clear();
      if (below(5) == 0 && !report.flight.empty()) {
        CollectiveRecord& record =
            report.flight[static_cast<std::size_t>(below(static_cast<int>(report.flight.size())))];
        record.elements = below(5);
        record.group = below(2) == 0 ? "other" : "default_pg";
        record.op = static_cast<OpType>(below(4));
        record.label.step = below(5) - 1;
        record.parameters = nullptr;
      }
      if (below(8) == 0) report.failed_collective.reset();
      reports.push_back(report);
    }
    const auto found = diagnose(reports, scenario);
    if (!found) continue;
    kinds.insert(to_string(found->kind));
    CHECK_FALSE(format_text(*found).empty());
    CHECK_FALSE(to_json(*found).dump().empty());
    for (const int rank : found->ranks) {
      CHECK(rank >= 0);
      CHECK(rank < scenario.ranks);
    }
  }
  // The rounds have come to every rule.
  CHECK(kinds.size() >= 7);
}

TEST_CASE("diagnosis: the text fits a terminal and holds what the JSON holds") {
  const auto found = diagnose(test::uneven_reports_simulated(), test::uneven_scenario());
  const std::string text = format_text(*found);
  CAPTURE(text);
  CHECK(text.substr(0, text.find('\n')) ==
        "deadlock: uneven_shards (K01), ranks 2-3, step 2, bucket 0 [certain]");
  CHECK_THAT(text, contains("\n  because  ranks 2-3 ran out of data"));
  CHECK_THAT(text, contains("\n  fix      set sampler.pad to true"));
  CHECK_THAT(text, contains("\n  0-1    blocked"));
  CHECK_THAT(text, contains("2.500000 s\n"));
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = text.find('\n', begin);
    REQUIRE(end != std::string::npos);
    CHECK(end - begin <= 100);
    begin = end + 1;
  }
  const Json json = to_json(*found);
  for (const char* key : {"verdict", "kind", "ranks", "step", "bucket", "collective", "because",
                          "fix", "first_cause", "first_symptom", "table"}) {
    CHECK(json.contains(key));
  }
  CHECK(json["table"][1]["blocked_in"].is_null());
}

}  // namespace
}  // namespace gradsync
