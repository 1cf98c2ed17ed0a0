// What every diagnosis says beside its cause: confidence, where the sequences part, who waits for
// whom, what is ruled out, how to see it again.
#include <algorithm>

#include <nlohmann/json.hpp>

#include "gradsync/testbed/diagnosis/diagnosis.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/hand_made_reports.hpp"

namespace gradsync {
namespace {

using test::contains;
using test::HandMadeRank;

const std::vector<int> kEarly{0, 1}, kLate{2, 3};

/// Two ranks, both done, with one all-reduce of the program's own at the given call sites.
std::vector<RankReport> reports_with_sites(const std::vector<std::string>& sites) {
  std::vector<RankReport> reports;
  for (std::size_t rank = 0; rank < sites.size(); ++rank) {
    HandMadeRank made(static_cast<int>(rank), static_cast<int>(sites.size()));
    RankReport report = made.steps(1).finishes();
    CollectiveRecord own = report.flight.back();
    own.sequence = static_cast<std::int64_t>(report.flight.size());
    own.label.what = "metric";
    own.label.site = sites[rank];
    own.label.bucket = -1;
    own.parameters = nullptr;
    report.flight.push_back(own);
    report.collectives.push_back(own);
    reports.push_back(report);
  }
  return reports;
}

Scenario scenario_of(int ranks) {
  Scenario scenario;
  scenario.ranks = ranks;
  return scenario;
}

TEST_CASE("diagnosis: where the ranks part, three collectives before and what each side did then") {
  const auto found = diagnose(test::uneven_reports_simulated(), test::uneven_scenario());
  REQUIRE(found.has_value());
  REQUIRE(found->divergence.has_value());
  CHECK(found->divergence->group == "default_pg");
  CHECK(found->divergence->last_agreed == 3);
  const auto& rows = found->divergence->rows;
  REQUIRE(rows.size() == 6);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(rows[i].ranks == std::vector<int>{0, 1, 2, 3});
    CHECK(rows[i].sequence == static_cast<std::int64_t>(i) + 1);
  }
  CHECK(rows[3].ranks == kEarly);
  CHECK(rows[3].sequence == 4);
  CHECK(rows[3].collective == found->collective);
  CHECK(rows[4].sequence == 5);
  CHECK(rows[5].ranks == kLate);
  CHECK_FALSE(rows[5].sequence.has_value());
  CHECK(rows[5].collective == "nothing more: finished");
}

TEST_CASE(
    "diagnosis: the table says for whom a rank waits, and what the others expect of the rest") {
  const auto found = diagnose(test::uneven_reports_simulated(), test::uneven_scenario());
  REQUIRE(found.has_value());
  REQUIRE(found->table.size() == 2);
  CHECK(found->table[0].waits_for == kLate);
  CHECK(found->table[0].next_expected.empty());
  CHECK(found->table[1].waits_for.empty());
  CHECK(found->table[1].next_expected == found->collective);
}

TEST_CASE("diagnosis: a rank that left no report is waited for, and its sequence is not guessed") {
  auto reports = test::uneven_reports_simulated();
  reports.resize(3);
  const auto found = diagnose(reports, test::uneven_scenario());
  REQUIRE(found.has_value());
  CHECK(found->confidence == "likely");
  CHECK(found->table[0].waits_for == kLate);
  CHECK(found->ruled_out.empty());
  for (const SequenceRow& row : found->divergence->rows) {
    CHECK(std::find(row.ranks.begin(), row.ranks.end(), 3) == row.ranks.end());
  }
}

TEST_CASE("diagnosis: confidence is certain with all records, and a tie without a majority") {
  CHECK(diagnose(test::uneven_reports_real(), test::uneven_scenario())->confidence == "certain");

  auto reports = reports_with_sites({"a.py:1", "a.py:2"});
  CHECK(diagnose(reports, scenario_of(2))->confidence == "tie");
  CHECK(diagnose({}, scenario_of(2))->confidence == "open");
}

TEST_CASE("diagnosis: equal operations from different call sites are a finding") {
  const auto found =
      diagnose(reports_with_sites({"loss.py:40", "loss.py:52", "loss.py:40"}), scenario_of(3));
  REQUIRE(found.has_value());
  CHECK(found->verdict == "silent divergence");
  CHECK(found->kind == DiagnosisKind::kDifferentCallSites);
  CHECK(found->catalog == "K05");
  CHECK(found->confidence == "likely");
  CHECK(found->ranks == std::vector<int>{1});
  CHECK_THAT(found->because, contains("ranks 0, 2 at loss.py:40; rank 1 at loss.py:52"));
  CHECK_FALSE(found->divergence.has_value());

  CHECK_FALSE(diagnose(reports_with_sites({"a.py:1", "a.py:1"}), scenario_of(2)).has_value());
  CHECK_FALSE(diagnose(reports_with_sites({"a.py:1", ""}), scenario_of(2)).has_value());
}

TEST_CASE("diagnosis: what is ruled out does not contradict the verdict") {
  const auto uneven = diagnose(test::uneven_reports_simulated(), test::uneven_scenario());
  const auto says = [](const Diagnosis& found, const std::string& start) {
    return std::any_of(found.ruled_out.begin(), found.ruled_out.end(),
                       [&](const std::string& line) { return line.starts_with(start); });
  };
  CHECK(says(*uneven, "a crash"));
  CHECK(says(*uneven, "collectives that differ"));
  CHECK(says(*uneven, "a rank that is busy"));
  CHECK(says(*uneven, "parameters that differ: equal on all ranks up to step 1"));

  std::vector<RankReport> crashed{
      HandMadeRank(0, 2).steps(1).blocked(),
      HandMadeRank(1, 2).steps(1).fails(ErrorCode::kInternal, "boom", 1.5)};
  const auto crash = diagnose(crashed, scenario_of(2));
  REQUIRE(crash.has_value());
  CHECK(crash->verdict == "crash");
  CHECK_FALSE(says(*crash, "a crash"));
}

TEST_CASE("diagnosis: how to see it again is the same for the same scenario in every world") {
  Scenario scenario = test::uneven_scenario();
  const auto first = diagnose(test::uneven_reports_simulated(), scenario)->reproduction;
  CHECK(first.scenario_hash.size() == 32);
  CHECK(first.command == "gradsync run scenario.json");
  CHECK(first.stop_step == 2);
  scenario.backend = "sim";
  scenario.output.detail_ranks = 1;
  CHECK(diagnose(test::uneven_reports_real(), scenario)->reproduction.scenario_hash ==
        first.scenario_hash);
  scenario.seed = 1;
  const auto other = diagnose(test::uneven_reports_real(), scenario)->reproduction;
  CHECK(other.scenario_hash != first.scenario_hash);
  CHECK_THAT(other.seeds, contains("weights 1"));
}

TEST_CASE("diagnosis: text and JSON hold the same common block") {
  const auto found = diagnose(test::uneven_reports_simulated(), test::uneven_scenario());
  const auto json = to_json(*found);
  const std::string text = format_text(*found);
  CHECK(json["confidence"] == "certain");
  CHECK_THAT(text, contains("[certain]"));
  CHECK(json["divergence"]["last_agreed"] == 3);
  CHECK_THAT(text, contains("the ranks part after collective #3 of default_pg"));
  CHECK(json["table"][0]["waits_for"] == kLate);
  CHECK_THAT(text, contains("for      ranks 2-3"));
  for (const auto& line : json["ruled_out"]) {
    const std::string start = line.get<std::string>().substr(0, 30);
    CHECK_THAT(text, contains(start));
  }
  CHECK_THAT(text, contains(json["reproduce"]["scenario_hash"].get<std::string>()));
}

}  // namespace
}  // namespace gradsync
