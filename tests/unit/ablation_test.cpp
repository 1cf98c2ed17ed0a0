// What a scenario is run without, and how the answer is told.
#include "gradsync/predict/ablation.hpp"

#include <nlohmann/json.hpp>

#include "tests/support/catch.hpp"

namespace gradsync {
namespace {

using test::Approx;
using test::contains;

Scenario troubled() {
  Scenario scenario;
  scenario.imperfections.compute_jitter = 0.02;
  scenario.imperfections.slow_ranks = {{{1}, 1.5}, {{2}, 1.2}};
  scenario.faults = {{.ranks = {3}, .kind = SlowFault{.factor = 2}}};
  return scenario;
}

PointResult completed(double exposed_seconds) {
  PointResult result;
  result.outcome = "completed";
  result.forward = 0.03;
  result.backward = 0.06;
  result.exposed = exposed_seconds;
  result.step_p50 = 0.09 + exposed_seconds;
  result.period = result.step_p50;
  result.step_p95 = result.step_p50;
  return result;
}

}  // namespace

TEST_CASE("a scenario is run without each imperfection and fault, then without all of them") {
  const std::vector<Ablation> all = ablations(troubled());
  REQUIRE(all.size() == 5);
  CHECK(all[0].pointer == "/imperfections/compute/jitter");
  CHECK(all[0].overrides.at(0).path == "imperfections.compute.jitter");
  CHECK(nlohmann::json::parse(all[0].overrides.at(0).value) == 0);
  CHECK(all[1].pointer == "/imperfections/slow_ranks/0");
  CHECK(nlohmann::json::parse(all[1].entry).at("ranks") == nlohmann::json{1});
  const auto left = nlohmann::json::parse(all[1].overrides.at(0).value);
  REQUIRE(left.size() == 1);  // the other one stays
  CHECK(left.at(0).at("ranks") == nlohmann::json{2});
  CHECK(all[2].pointer == "/imperfections/slow_ranks/1");
  CHECK(all[3].pointer == "/faults/0");
  CHECK(all[3].overrides.at(0).value == "[]");
  CHECK(all[4].pointer.empty());
  CHECK(all[4].overrides.size() == 2);

  CHECK(ablations(Scenario()).empty());
}

TEST_CASE("what draws by its place in a list keeps it") {
  Scenario scenario;
  scenario.imperfections.loader_stalls = {{{}, 1, 0.5, Seconds(1)}, {{1}, 1, 0.1, Seconds(2)}};
  scenario.imperfections.traffic.resize(2);
  const std::vector<Ablation> all = ablations(scenario);
  REQUIRE(all.size() == 5);
  const auto stalls = nlohmann::json::parse(all[0].overrides.at(0).value);
  REQUIRE(stalls.size() == 2);
  CHECK(stalls.at(0).at("probability") == 0);
  CHECK(stalls.at(1).at("probability") == 0.1);
  const auto traffic = nlohmann::json::parse(all[3].overrides.at(0).value);
  CHECK(traffic.at(0).at("flows") == 1);
  CHECK(traffic.at(1).at("flows") == 0);
}

TEST_CASE("what an entry costs is a part of the step as it is, the most costly first") {
  AblationAnswer answer;
  answer.as_is = completed(0.010);
  answer.rows = {{{"/imperfections/links/0", "{}", {}}, completed(0.009)},
                 {{"/imperfections/links/1", "{}", {}}, completed(0.005)},
                 {{"", "", {}}, completed(0.0)}};
  CHECK(cost(answer, answer.rows[0]) == Approx(0.01));
  CHECK(cost(answer, answer.rows[1]) == Approx(0.05));
  const std::string text = describe(answer);
  CHECK_THAT(text, contains("5.0%"));
  CHECK(text.find("links/1") < text.find("links/0"));
  CHECK(text.find("links/0") < text.find("all of these"));

  const auto json = to_json(answer);
  CHECK(json.at("rows").at(1).at("cost").get<double>() == Approx(0.05));
  CHECK(json.at("rows").at(2).at("without").is_null());
}

TEST_CASE("a run that did not complete is shown as what it came to, and has no cost") {
  AblationAnswer answer;
  answer.as_is.outcome = "hang";
  answer.rows = {{{"/faults/0", "{}", {}}, completed(0.01)}, {{"/faults/1", "{}", {}}, {}}};
  answer.rows[1].result.outcome = "hang";
  CHECK(cost(answer, answer.rows[0]) == 0);
  const std::string text = describe(answer);
  CHECK_THAT(text, contains("100 ms"));
  CHECK_THAT(text, contains("hang"));
  CHECK(text.find('%') == std::string::npos);
}

}  // namespace gradsync
