#include <algorithm>
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
