#include <limits>

#include <nlohmann/json.hpp>

#include "gradsync/core/version.hpp"
#include "gradsync/testbed/record/files.hpp"
#include "gradsync/testbed/record/rank_report_json.hpp"
#include "gradsync/testbed/record/statistics.hpp"
#include "gradsync/testbed/result/expectations.hpp"
#include "gradsync/testbed/result/run_result.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/hand_made_reports.hpp"
#include "tests/support/paths.hpp"

namespace gradsync {
namespace {

using test::Approx;
using test::contains;
using test::HandMadeRank;
using Json = nlohmann::ordered_json;

Scenario scenario_of(int ranks) {
  Scenario scenario;
  scenario.name = "s";
  scenario.backend = "sim";
  scenario.ranks = ranks;
  return scenario;
}

RunResult result_of(const Scenario& scenario, std::vector<RankReport> reports) {
  RunOutcome outcome;
  outcome.reports = std::move(reports);
  outcome.wall = Seconds{2};
  outcome.simulated = Seconds{3};
  outcome.peak_rss_bytes = 100;
  outcome.notes = {"a note"};
  return make_result(scenario, outcome);
}

std::vector<RankReport> two_finished(int steps = 2) {
  return {HandMadeRank(0, 2).steps(steps).finishes(), HandMadeRank(1, 2).steps(steps).finishes()};
}

TEST_CASE("result: JSON has the stable keys, in their order") {
  const Json json = to_json(result_of(scenario_of(2), two_finished()));
  std::vector<std::string> keys;
  for (const auto& [key, value] : json.items()) keys.push_back(key);
  CHECK(keys == std::vector<std::string>{"schema_version",
                                         "scenario",
                                         "backend",
                                         "world_size",
                                         "outcome",
                                         "steps_completed",
                                         "parameters",
                                         "parameter_hash",
                                         "loss",
                                         "step_seconds",
                                         "steady_step_seconds",
                                         "blame",
                                         "network",
                                         "time_breakdown",
                                         "simulated_seconds",
                                         "wall_seconds",
                                         "peak_rss_bytes",
                                         "ddp",
                                         "diagnosis",
                                         "tool_version",
                                         "exit_status",
                                         "notes",
                                         "expectations"});
  CHECK(json["schema_version"] == 1);
  CHECK(json["scenario"] == "s");
  CHECK(json["backend"] == "sim");
  CHECK(json["world_size"] == 2);
  CHECK(json["outcome"] == "completed");
  CHECK(json["steps_completed"] == 2);
  CHECK(json["parameters"] == Json::parse(R"({"count":6,"tensors":3,"bytes":24})"));
  CHECK(json["parameter_hash"] == "hash-1");
  CHECK(json["simulated_seconds"] == 3.0);
  CHECK(json["wall_seconds"] == 2.0);
  CHECK(json["peak_rss_bytes"] == 100);
  CHECK(json["ddp"]["buckets"][1] ==
        Json::parse(R"({"index":1,"bytes":8,"elements":2,"parameters":["a"]})"));
  CHECK(json["ddp"]["rebuilt"] == false);
  CHECK(json["ddp"]["comm_hook"] == "allreduce");
  CHECK(json["diagnosis"].is_null());
  CHECK(json["tool_version"] == version());
  CHECK(json["exit_status"] == 0);
  CHECK(json["notes"] == Json::parse(R"(["a note"])"));
}

TEST_CASE("result: docs/results.md defines every key") {
  const std::string page = read_file(gradsync::test::source_dir() + "/docs/results.md");
  const auto defined = [&](const std::string& key) {
    CAPTURE(key);
    CHECK_THAT(page, contains("`" + key + "`"));
  };
  const RunResult hang = result_of(test::uneven_scenario(), test::uneven_reports_simulated());
  const Json json = to_json(hang);
  for (const auto& [key, value] : json.items()) {
    defined(key);
    if (!value.is_object()) continue;
    for (const auto& [inner, ignored] : value.items()) defined(inner);
  }
  for (const auto& [key, value] : json["diagnosis"]["table"][0].items()) defined(key);
  for (const auto& [key, value] : json["ddp"]["buckets"][0].items()) defined(key);
  const Json report = to_json(test::uneven_reports_simulated()[0]);
  for (const Json& record : {report, report["flight"][0], report["steps"][0]}) {
    for (const auto& [key, value] : record.items()) defined(key);
  }
}

TEST_CASE("result: the loss of a step is the mean over ranks") {
  auto reports = two_finished(3);
  for (std::size_t step = 0; step < 3; ++step) {
    reports[0].steps[step].loss = 4.0 - static_cast<double>(step);
    reports[1].steps[step].loss = 2.0 - static_cast<double>(step);
  }
  const RunResult result = result_of(scenario_of(2), reports);
  CHECK(result.loss.first == 3.0);
  CHECK(result.loss.last == 1.0);
  CHECK(result.loss.mean == 2.0);
}

TEST_CASE("result: a loss that is not finite is null, and a note says from which step on") {
  auto reports = two_finished(4);
  reports[1].steps[2].loss = std::numeric_limits<double>::infinity();
  reports[1].steps[3].loss = std::numeric_limits<double>::quiet_NaN();
  const RunResult result = result_of(scenario_of(2), reports);
  const Json json = to_json(result);
  CHECK(json["loss"]["first"] == 8.0);
  CHECK(json["loss"]["last"].is_null());
  CHECK(result.notes ==
        std::vector<std::string>{"a note", "the loss is not finite from step 2 on"});
}

TEST_CASE(
    "result: a step lasts as long as on its slowest rank; the breakdown is the mean over ranks") {
  auto reports = two_finished(4);
  const double seconds[] = {0.8, 0.9, 1.6, 0.8};
  for (std::size_t step = 0; step < 4; ++step) {
    StepRecord& record = reports[1].steps[step];
    record.optimizer_end = record.begin + Seconds{seconds[step]};
  }
  const RunResult result = result_of(scenario_of(2), reports);
  CHECK(*result.step_seconds.min == Approx(0.8));
  CHECK(*result.step_seconds.max == Approx(1.6));
  CHECK(*result.step_seconds.mean == Approx((0.8 + 0.9 + 1.6 + 0.8) / 4));
  CHECK(*result.step_seconds.p50 == Approx(0.85));
  CHECK(*result.step_seconds.p95 == Approx(0.9 + 0.85 * 0.7));
  CHECK(*result.time_breakdown.forward == Approx(0.2));
  CHECK(*result.time_breakdown.backward_compute == Approx(0.3));
  CHECK(*result.time_breakdown.backward_comm == Approx(0.2));
  CHECK(*result.time_breakdown.exposed_comm == Approx(0.1));
  CHECK(*result.time_breakdown.optimizer == Approx((4 * 0.1 + 0.1 + 0.2 + 0.9 + 0.1) / 8));
}

TEST_CASE("result: only steps that every rank completed count") {
  const Scenario scenario = test::uneven_scenario();
  auto reports = test::uneven_reports_simulated();
  // Ranks 0 and 1 had gone on by themselves.
  reports[0].steps.push_back(reports[0].steps.back());
  reports[0].steps.back().step = 2;
  reports[0].steps.back().loss = 1000;
  const RunResult result = result_of(scenario, reports);
  CHECK(result.outcome == Outcome::kHang);
  CHECK(result.exit_status() == 4);
  CHECK(result.steps_completed == 2);
  CHECK(result.loss.last == 7.0);
  CHECK(result.parameter_hash == "hash-1");
}

TEST_CASE("result: without steps there are no statistics, and nothing is made up") {
  RankReport blank;
  const Json json = to_json(result_of(scenario_of(1), {blank}));
  CHECK(json["outcome"] == "hang");
  for (const char* key : {"loss", "step_seconds", "time_breakdown"}) {
    for (const auto& [name, value] : json[key].items()) CHECK(value.is_null());
  }
  CHECK(json["parameter_hash"].is_null());
  CHECK(to_json(result_of(scenario_of(2), {}))["steps_completed"] == 0);
}

TEST_CASE("result: a warning that all ranks give is one note") {
  auto reports = two_finished();
  for (RankReport& report : reports) report.warnings = {"find_unused_parameters found none"};
  CHECK(result_of(scenario_of(2), reports).notes ==
        std::vector<std::string>{"a note", "rank 0 warns: find_unused_parameters found none"});
}

TEST_CASE("result: every outcome has its exit status") {
  CHECK(exit_status(Outcome::kCompleted) == 0);
  CHECK(exit_status(Outcome::kInvalid) == 2);
  CHECK(exit_status(Outcome::kHang) == 4);
  CHECK(exit_status(Outcome::kDesync) == 5);
  CHECK(exit_status(Outcome::kFailed) == 6);
  auto reports = two_finished();
  reports[1].steps[1].parameter_hash = "other";
  CHECK(result_of(scenario_of(2), reports).outcome == Outcome::kDesync);
  reports[1].state = RankState::kRunning;
  reports[1].exit_signal = 11;
  CHECK(result_of(scenario_of(2), reports).outcome == Outcome::kFailed);
}

TEST_CASE("statistics: percentiles interpolate as numpy does") {
  const std::vector<double> values{1, 2, 3, 10};
  CHECK(percentile(values, 0) == 1);
  CHECK(percentile(values, 50) == 2.5);
  CHECK(percentile(values, 95) == Approx(8.95));
  CHECK(percentile(values, 100) == 10);
  CHECK(percentile(std::vector<double>{7}, 95) == 7);
  CHECK(mean(values) == 4);
}

/// The result of the named expectation.
ExpectationResult find(const std::vector<ExpectationResult>& list, const std::string& what) {
  for (const ExpectationResult& result : list) {
    if (result.what == what) return result;
  }
  FAIL("no expectation " << what);
  return {};
}

TEST_CASE("expectations: nothing expected, nothing checked") {
  const auto reports = two_finished();
  CHECK(check_expectations(scenario_of(2), {result_of(scenario_of(2), reports)}, reports).empty());
  CHECK(all_met({}));
}

TEST_CASE("expectations: each is met by the run that it describes and not by another") {
  Scenario scenario = test::uneven_scenario();
  scenario.expect.outcome = "hang";
  scenario.expect.exit_status = 4;
  scenario.expect.steps_completed = 2;
  scenario.expect.parameter_hash = "hash-1";
  scenario.expect.loss_last_min = 6.5;
  scenario.expect.loss_last_max = 7.5;
  scenario.expect.loss_last_ratio_max = 0.9;
  scenario.expect.equal_hashes_on_all_ranks = true;
  scenario.expect.diagnosis_kind = "uneven_shards";
  scenario.expect.diagnosis_ranks = {3, 2};
  const auto hang = test::uneven_reports_simulated();
  const auto met = check_expectations(scenario, {result_of(scenario, hang)}, hang);
  CHECK(met.size() == 10);
  for (const ExpectationResult& result : met) {
    CAPTURE(result.what, result.expected, result.found);
    CHECK(result.ok);
  }
  CHECK(all_met(met));

  std::vector<RankReport> other;
  for (int rank = 0; rank < 4; ++rank) {
    HandMadeRank made(rank, 4);
    made.steps(3).finishes();
    for (StepRecord& step : made.report().steps) step.loss = 9.0 + static_cast<double>(step.step);
    other.push_back(made);
  }
  other[2].steps[1].parameter_hash = "x";
  const auto unmet = check_expectations(scenario, {result_of(scenario, other)}, other);
  CHECK_FALSE(all_met(unmet));
  const auto check = [&](const char* what, const char* expected, const char* found) {
    const ExpectationResult result = find(unmet, what);
    CAPTURE(what);
    CHECK(result.expected == expected);
    CHECK(result.found == found);
    CHECK_FALSE(result.ok);
  };
  check("/expect/outcome", "hang", "desync");
  check("/expect/exit_status", "4", "5");
  check("/expect/steps_completed", "2", "3");
  check("/expect/parameter_hash", "hash-1", "hash-2");
  check("/expect/loss/last_max", "at most 7.5", "11");
  check("/expect/loss/last_ratio_max", "at most 0.9", "1.2222222222222223");
  check("/expect/equal_hashes_on_all_ranks", "one hash a step", "2 hashes after step 1");
  check("/expect/diagnosis/kind", "uneven_shards", "parameters_differ");
  check("/expect/diagnosis/ranks", "ranks 2-3", "rank 2");
}

TEST_CASE("expectations: repetitions must have one hash, and each must meet every line") {
  Scenario scenario = scenario_of(2);
  scenario.expect.outcome = "completed";
  const auto reports = two_finished();
  RunResult first = result_of(scenario, reports);
  RunResult second = first;
  auto list = check_expectations(scenario, {first, second, first}, reports);
  CHECK(find(list, "/expect/repeat").ok);
  CHECK(find(list, "/expect/repeat").expected == "3 runs with one hash");
  second.parameter_hash = "aa";
  second.outcome = Outcome::kHang;
  list = check_expectations(scenario, {first, second, first}, reports);
  CHECK_FALSE(find(list, "/expect/repeat").ok);
  CHECK(find(list, "/expect/repeat").found == "1 with aa, 2 with hash-1");
  CHECK(find(list, "/expect/outcome").found == "hang in run 2");
  second.parameter_hash.reset();
  first.parameter_hash.reset();
  CHECK_FALSE(find(check_expectations(scenario, {first, second}, reports), "/expect/repeat").ok);
}

TEST_CASE("expectations: hashes that were never taken are not equal") {
  Scenario scenario = scenario_of(2);
  scenario.expect.equal_hashes_on_all_ranks = true;
  auto reports = two_finished();
  for (RankReport& report : reports) {
    for (StepRecord& step : report.steps) step.parameter_hash.clear();
  }
  const auto list = check_expectations(scenario, {result_of(scenario, reports)}, reports);
  CHECK(list.at(0).found == "no hash was taken");
  CHECK_FALSE(list.at(0).ok);
}

}  // namespace
}  // namespace gradsync
