// Diagnoses of ranks that wait: who keeps them waiting.
#include <utility>

#include "gradsync/testbed/diagnosis/diagnosis.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/hand_made_reports.hpp"

namespace gradsync {
namespace {

using test::contains;
using test::HandMadeRank;

TEST_CASE("diagnosis: ranks that never joined are named") {
  Scenario scenario;
  scenario.ranks = 4;
  std::vector<RankReport> reports(2);
  for (int rank : {0, 1}) {
    RankReport& report = reports[static_cast<std::size_t>(rank)];
    report.rank = rank;
    report.state = RankState::kFailed;
    report.error_code = ErrorCode::kTimeout;
    report.error = "ranks 2, 3 did not come";
    report.ended = Seconds{30};
  }
  // The launcher's word on those of which nothing came.
  for (int rank : {2, 3}) reports.emplace_back().rank = rank;
  const auto found = diagnose(reports, scenario);
  REQUIRE(found.has_value());
  CHECK(found->verdict == "deadlock");
  CHECK(found->kind == DiagnosisKind::kNotJoined);
  CHECK(found->ranks == std::vector<int>{2, 3});
}

TEST_CASE("diagnosis: a rank that came after the others' timeout was slow, not stuck") {
  Scenario scenario;
  scenario.ranks = 3;
  std::vector<RankReport> reports{
      HandMadeRank(0, 3).steps(1).blocked().fails(ErrorCode::kTimeout, "timed out", 6.5),
      HandMadeRank(1, 3).steps(1).blocked().fails(ErrorCode::kPeerFailed, "rank 0 timed out", 6.6),
      HandMadeRank(2, 3).steps(1).blocked().fails(ErrorCode::kPeerFailed, "rank 0 timed out", 8)};
  for (CollectiveRecord& record : reports[2].flight) {
    if (record.label.step == 1) record.issued = Seconds{7.9};
  }
  const auto found = diagnose(reports, scenario);
  REQUIRE(found.has_value());
  CHECK(found->verdict == "waiting");
  CHECK(found->kind == DiagnosisKind::kLateRank);
  CHECK(found->ranks == std::vector<int>{2});
  CHECK(found->step == 1);
}

TEST_CASE("diagnosis: when all ranks are in the same collective no rank is blamed") {
  Scenario scenario;
  scenario.ranks = 2;
  const auto found = diagnose(
      {HandMadeRank(0, 2).steps(1).blocked(), HandMadeRank(1, 2).steps(1).blocked()}, scenario);
  REQUIRE(found.has_value());
  CHECK(found->kind == DiagnosisKind::kNetwork);
  CHECK(found->ranks.empty());
  CHECK_THAT(found->because, contains("all ranks are inside the same collective"));
}

TEST_CASE("diagnosis: what the world says of its links is the cause, and whether they deliver") {
  Scenario scenario;
  scenario.ranks = 2;
  std::vector<RankReport> reports{HandMadeRank(0, 2).steps(1).blocked(),
                                  HandMadeRank(1, 2).steps(1).blocked()};
  const auto with = [&](const std::vector<WorldCondition>& conditions) {
    for (RankReport& report : reports) report.world = conditions;
    return *diagnose(reports, scenario);
  };
  const WorldCondition over{"link a was down", Seconds{0}, Seconds{1}, false};
  const WorldCondition down{"link b is down", Seconds{1}, std::nullopt, false};
  const WorldCondition lossy{"link c loses 5% of the packets", Seconds{0}, std::nullopt, true};
  CHECK(with({over}).first_cause == "outside the ranks");  // before the collective was issued
  CHECK(with({over, down}).first_cause == "link b is down");
  CHECK(with({over, down}).verdict == "deadlock");
  CHECK(with({down, lossy}).verdict == "deadlock");
  CHECK(with({lossy}).verdict == "waiting");
  CHECK(with({lossy}).kind == DiagnosisKind::kNetwork);
  CHECK_THAT(with({lossy}).because, contains("slow, not stuck"));
}

TEST_CASE("diagnosis: ranks that do not come back from their clean-up are a consequence") {
  Scenario scenario;
  scenario.ranks = 3;
  const auto survivor = [](int rank) {
    RankReport report =
        HandMadeRank(rank, 3).steps(1).blocked().fails(ErrorCode::kRankDied, "rank 2 died", 1.8);
    report.clean_up_since = Seconds{1.8};
    report.exit_code = 143;  // its launcher's SIGTERM
    return report;
  };
  RankReport dead;
  dead.rank = 2;
  dead.exit_code = 9;
  dead.ended = Seconds{1.9};
  const auto found = diagnose({survivor(0), survivor(1), dead}, scenario);
  REQUIRE(found.has_value());
  CHECK(found->kind == DiagnosisKind::kRankDied);
  CHECK(found->ranks == std::vector<int>{2});
  REQUIRE(found->consequences.size() == 2);
  CHECK_THAT(found->consequences[1],
             contains("ranks 0-1 failed and did not come back from their clean-up"));
}

TEST_CASE("diagnosis: the rank that others cannot connect to is named by most of them") {
  Scenario scenario;
  scenario.ranks = 4;
  const auto fails = [](int rank, const std::vector<int>& unreachable) {
    RankReport report;
    report.rank = rank;
    report.state = RankState::kFailed;
    report.error_code = ErrorCode::kTimeout;
    report.error = "could not connect";
    report.unreachable = unreachable;
    return report;
  };
  RankReport blank;
  blank.rank = 1;
  const auto found = diagnose({fails(0, {1}), blank, fails(2, {0}), fails(3, {1})}, scenario);
  REQUIRE(found.has_value());
  CHECK(found->verdict == "deadlock");
  CHECK(found->kind == DiagnosisKind::kUnreachable);
  CHECK(found->catalog == "K22");
  CHECK(found->ranks == std::vector<int>{1});
  CHECK_THAT(found->first_symptom, contains("ranks 0, 3 do not connect to rank 1"));
}

TEST_CASE("diagnosis: a rank that had to be ended by a signal is named, not those that reacted") {
  Scenario scenario;
  scenario.ranks = 3;
  std::vector<RankReport> reports{
      HandMadeRank(0, 3).steps(1).blocked().fails(ErrorCode::kTimeout, "timed out", 4.5),
      HandMadeRank(1, 3).steps(1).blocked().fails(ErrorCode::kPeerFailed, "rank 0 timed out", 4.9),
      HandMadeRank(2, 3).steps(1).blocked().fails(ErrorCode::kPeerFailed, "rank 0 timed out", 4.6)};
  reports[0].exit_code = 4;
  reports[1].exit_code = 143;  // its launcher's SIGTERM
  reports[2].exit_code = 6;
  const auto found = diagnose(reports, scenario);
  REQUIRE(found.has_value());
  CHECK(found->kind == DiagnosisKind::kStalledRank);
  CHECK(found->ranks == std::vector<int>{1});
  CHECK(found->step == 1);
  // Where the launcher ended all of them, nobody is told apart.
  reports[0].exit_code = reports[2].exit_code = 143;
  CHECK(diagnose(reports, scenario)->kind == DiagnosisKind::kNetwork);
}

TEST_CASE(
    "diagnosis: collectives that run where the other has no room are told from a circle of waits") {
  // Both ranks have issued both; rank 0's device runs g1's, rank 1's device g2's.
  const auto rank = [](int number, const std::string& running) {
    RankReport report = HandMadeRank(number, 2).steps(1).blocked();
    for (const char* group : {"g1", "g2"}) {
      CollectiveRecord record = report.flight.front();
      record.group = group;
      record.sequence = 0;
      record.label.what = "statistics";
      record.issued = Seconds{group == std::string("g1") ? 1.6 : 1.7};
      record.state = running == group ? CollectiveState::kStarted : CollectiveState::kScheduled;
      record.started = Seconds{running == group ? 1.5 : -1};
      record.completed = Seconds{-1};
      report.flight.push_back(record);
    }
    return report;
  };
  Scenario scenario;
  scenario.ranks = 2;
  const auto found = diagnose({rank(0, "g1"), rank(1, "g2")}, scenario);
  REQUIRE(found.has_value());
  CHECK(found->verdict == "deadlock");
  CHECK(found->kind == DiagnosisKind::kDeviceSlots);
  CHECK(found->catalog == "K17");
  CHECK(found->ranks == std::vector<int>{0, 1});
  REQUIRE(found->chain.size() == 2);
  CHECK_THAT(found->chain[0], contains("on rank 0") && contains("of g1 runs"));
  // Issued in different orders it is the program's circle, not the devices'.
  RankReport other = rank(1, "g2");
  CollectiveRecord& last = other.flight[other.flight.size() - 1];
  CollectiveRecord& before = other.flight[other.flight.size() - 2];
  std::swap(last.issued, before.issued);
  std::swap(last, before);
  CHECK(diagnose({rank(0, "g1"), other}, scenario)->kind != DiagnosisKind::kDeviceSlots);
  // In one order on both devices it is no circle.
  CHECK(diagnose({rank(0, "g1"), rank(1, "g1")}, scenario)->kind != DiagnosisKind::kDeviceSlots);
}

TEST_CASE("diagnosis: a rank that left its loop early is suspected before one that waits") {
  Scenario scenario;
  scenario.ranks = 3;
  HandMadeRank gone = HandMadeRank(2, 3).shard(1024, 342, 11).steps(4).finishes();
  const auto blocked = [](int rank) {
    return HandMadeRank(rank, 3).shard(1024, 342, 11).steps(4).blocked();
  };
  const auto found = diagnose({blocked(0), blocked(1), gone}, scenario);
  REQUIRE(found.has_value());
  CHECK(found->verdict == "deadlock");
  CHECK(found->kind == DiagnosisKind::kLeftLoop);
  CHECK(found->ranks == std::vector<int>{2});
  CHECK(found->step == 4);
}

TEST_CASE("diagnosis: a rank outside any collective is where the cause is") {
  Scenario scenario;
  scenario.ranks = 2;
  HandMadeRank busy = HandMadeRank(1, 2).steps(4);
  for (const auto& [phase, kind] : {std::pair(Phase::kData, DiagnosisKind::kStalledLoader),
                                    std::pair(Phase::kBackward, DiagnosisKind::kStalledCompute),
                                    std::pair(Phase::kUser, DiagnosisKind::kStalledRank)}) {
    busy.report().phase = phase;
    const auto found = diagnose({HandMadeRank(0, 2).steps(4).blocked(), busy}, scenario);
    REQUIRE(found.has_value());
    CHECK(found->kind == kind);
    CHECK(found->ranks == std::vector<int>{1});
    CHECK(found->step == 4);
  }
}

TEST_CASE("diagnosis: a hang whose cause the records do not show is called unknown") {
  Scenario scenario;
  scenario.ranks = 3;
  RankReport silent;
  silent.rank = 2;
  const auto found = diagnose(
      {HandMadeRank(0, 3).steps(4).blocked(), HandMadeRank(1, 3).steps(4).blocked(), silent},
      scenario);
  REQUIRE(found.has_value());
  CHECK(found->verdict == "deadlock");
  CHECK(found->kind == DiagnosisKind::kUnknown);
  CHECK(found->ranks == std::vector<int>{2});
  CHECK(found->because ==
        "rank 2 has not entered the collective in which the others wait: rank 2 left no report");
}

}  // namespace
}  // namespace gradsync
