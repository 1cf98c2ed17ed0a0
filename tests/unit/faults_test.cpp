// The faults of a scenario: their words, whom they concern and when, and what they refuse.
#include <variant>

#include <nlohmann/json.hpp>

#include "gradsync/comm/flight_recorder.hpp"
#include "gradsync/core/error.hpp"
#include "gradsync/core/name_pattern.hpp"
#include "gradsync/testbed/faults/rank_faults.hpp"
#include "gradsync/testbed/record/report_keeper.hpp"
#include "gradsync/testbed/scenario/fault_rows.hpp"
#include "gradsync/testbed/scenario/scenario.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/fake_clock.hpp"

namespace gradsync {
namespace {

using test::contains;

Scenario parse(const std::string& text) {
  return parse_scenario(text, "test.json", "");
}

TEST_CASE("faults: every kind has one row, is read by its word, and written back to the same") {
  const auto& rows = scenario_table::fault_rows();
  REQUIRE(rows.size() == std::variant_size_v<FaultKind>);
  for (std::size_t kind = 0; kind < rows.size(); ++kind) {
    const std::string word = rows[kind].kind.name;
    INFO(word);
    std::string more;
    if (word == "group") more = R"(, "members": [0, 1])";
    if (word == "unused") more = R"(, "parameters": ["head.*"])";
    if (word == "add") more = R"(, "parameters": ["extra.weight"], "shape": [4])";
    const Scenario scenario = parse(R"({"backend": "sim", "model": {"kind": "transformer"},
                  "cluster": {"gpus_per_node": 1}, "faults": [{"kind": ")" +
                                    word + "\"" + more + "}]}");
    REQUIRE(scenario.faults.size() == 1);
    CHECK(scenario.faults[0].kind.index() == kind);
    CHECK(name_of(scenario.faults[0]) == word);
    CHECK(&scenario_table::row_of(scenario.faults[0]) == &rows[kind]);
    CHECK(parse(to_json(scenario).dump()) == scenario);
  }
}

TEST_CASE("faults: they concern ranks and steps, a condition all that follow") {
  const Scenario scenario = parse(R"({"ranks": 4, "faults": [
    {"kind": "skip", "ranks": [1, 3], "step": 2, "steps": 2},
    {"kind": "learning_rate", "step": 3, "value": 0.5},
    {"kind": "exit", "ranks": [0], "step": 5},
    {"kind": "resume", "to_step": 7}]})");
  REQUIRE(scenario.faults.size() == 4);
  CHECK(concerns(scenario.faults[0], 1));
  CHECK_FALSE(concerns(scenario.faults[0], 2));
  CHECK(concerns(scenario.faults[1], 2));
  const auto* skip = scenario.faults[0].as<SkipFault>();
  REQUIRE(skip != nullptr);
  CHECK_FALSE(covers(*skip, 1));
  CHECK(covers(*skip, 3));
  CHECK_FALSE(covers(*skip, 4));
  CHECK(skip->at == FaultPoint::kBackward);
  CHECK(scenario.faults[0].as<ThrowFault>() == nullptr);
  const auto* rate = scenario.faults[1].as<LearningRateFault>();
  REQUIRE(rate != nullptr);
  CHECK_FALSE(covers(*rate, 2));
  CHECK(covers(*rate, 1000000));
  const auto* exit = scenario.faults[2].as<ExitFault>();
  REQUIRE(exit != nullptr);
  CHECK(covers(*exit, 5));
  CHECK_FALSE(covers(*exit, 6));

  const RankFaults of_rank_2(scenario.faults, 2);
  CHECK(of_rank_2.find<SkipFault>(2) == nullptr);
  CHECK(of_rank_2.find<LearningRateFault>(2) == nullptr);
  REQUIRE(of_rank_2.find<LearningRateFault>(3) != nullptr);
  CHECK(of_rank_2.find<LearningRateFault>(3)->value == 0.5);
  CHECK(of_rank_2.first_step() == 7);
  CHECK(RankFaults(scenario.faults, 3).find<SkipFault>(2) != nullptr);
  CHECK(matches("head.*", "head.bias"));
  CHECK_FALSE(matches("head", "head.bias"));
}

TEST_CASE("faults: a mistake has its place, and what a backend cannot do is refused") {
  const auto refuses = [](const std::string& text, const std::string& pointer,
                          const std::string& words) {
    INFO(text);
    try {
      parse(text);
      FAIL("was accepted");
    } catch (const ConfigError& error) {
      CHECK(error.details().pointer == pointer);
      CHECK_THAT(error.what(), contains(words));
    }
  };
  refuses(R"({"faults": {"kind": "skip"}})", "/faults", "put it in brackets");
  refuses(R"({"faults": [{"kind": "skipp"}]})", "/faults/0/kind", "did you mean \"skip\"");
  refuses(R"({"faults": [{"kind": "skip", "code": 3}]})", "/faults/0/code", "\"exit\"");
  refuses(R"({"faults": [{"kind": "skip"}, {"kind": "skip", "ranks": [2]}]})", "/faults/1/ranks/0",
          "/ranks is 2");
  refuses(R"({"ranks": 2, "faults": [{"kind": "group", "members": [1, 0]}]})", "/faults/0/members",
          "ascending");
  refuses(R"({"faults": [{"kind": "add"}]})", "/faults/0/parameters", "that are added");
  refuses(R"({"backend": "gloo", "faults": [{"kind": "link"}]})", "/faults/0/kind",
          "only simulated cables");
  refuses(R"({"backend": "sim", "cluster": {"library": "nccl"},
              "faults": [{"kind": "link", "loss_percent": 1}]})",
          "/faults/0/loss_percent", "TCP");
  refuses(R"({"backend": "sim", "simulation": {"fidelity": "analytic"},
              "faults": [{"kind": "link", "lasts": "1s"}]})",
          "/faults/0/kind", "closed form");
  refuses(R"({"backend": "sim", "faults": [{"kind": "link", "loss_percent": 1}],
              "cluster": {"intra_node": {"latency": "0s"}, "inter_node": {"latency": "0s"}}})",
          "/faults/0/loss_percent", "round-trip");
  refuses(R"({"backend": "sim", "faults": [{"kind": "link"}]})", "/faults/0/node", "are on one");
  refuses(R"({"backend": "sim", "cluster": {"gpus_per_node": 1},
              "faults": [{"kind": "link", "node": 2}]})",
          "/faults/0/node", "2 nodes");
  refuses(R"({"faults": [{"kind": "throw", "at": "clean_up"}]})", "/faults/0/at",
          "allowed at \"clean_up\"");
  refuses(R"({"backend": "nccl", "faults": [{"kind": "rendezvous", "wrong_address": true}]})",
          "/faults/0/kind", "out of reach");
  refuses(R"({"faults": [{"kind": "rendezvous", "wrong_address": true, "duration": "1s"}]})",
          "/faults/0/duration", "fault of its own");
}

TEST_CASE("report keeper: what a rank keeps is bounded, and the last of it") {
  test::FakeClock clock;
  FlightRecorder recorder;
  RankReport report;
  {
    ReportKeeper keeper(report, clock, recorder, nullptr, false);
    for (int i = 0; i < 10000; ++i) {
      keeper.update([&](RankReport& r) { r.steps_completed = i; });
      keeper.enter(i % 2 == 0 ? Phase::kData : Phase::kForward);
      keeper.note(RankEventKind::kSkipped, "again");
      keeper.add_samples(i / 5000, std::vector<std::int64_t>(10, i));
      StepRecord step;
      step.step = i;
      step.checksums = {1, 2, 3};
      keeper.add_step(step);
    }
  }
  CHECK(report.phases.size() <= 2 * ReportKeeper::kPhasesKept);
  CHECK(report.phases.back().step == 9999);
  CHECK(report.events.size() <= 2 * ReportKeeper::kEventsKept);
  CHECK(report.events.back().step == 9999);
  CHECK(report.batches_drawn == 10000);
  std::size_t samples = 0;
  for (const EpochSamples& epoch : report.epochs) samples += epoch.indices.size();
  CHECK(samples <= ReportKeeper::kSamplesKept);
  CHECK_FALSE(report.epochs.back().complete);
  CHECK(report.steps.front().checksums.empty());
  CHECK(report.steps.back().checksums.size() == 3);
}

}  // namespace
}  // namespace gradsync
