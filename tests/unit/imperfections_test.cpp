// The imperfections of a scenario: what is drawn, what is refused, and who is blamed.
#include <cmath>

#include <nlohmann/json.hpp>

#include "gradsync/core/error.hpp"
#include "gradsync/core/random.hpp"
#include "gradsync/testbed/diagnosis/blame.hpp"
#include "gradsync/testbed/faults/rank_imperfections.hpp"
#include "gradsync/testbed/scenario/scenario.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/hand_made_reports.hpp"

namespace gradsync {
namespace {

using test::Approx;
using test::contains;
using test::HandMadeRank;

TEST_CASE("portable_exp is e^x to 2 ulp, and 1 at 0") {
  CHECK(portable_exp(0) == 1);
  for (double x = -30; x < 30; x += 0.0137) {
    CHECK(portable_exp(x) == Approx(std::exp(x)).epsilon(5e-16));
  }
}

TEST_CASE(
    "compute factors: mean 1, the sigma that was asked for, and a function of seed and place") {
  using Distribution = ImperfectionSpec::Distribution;
  for (const Distribution distribution : {Distribution::kLognormal, Distribution::kNormal}) {
    ImperfectionSpec spec;
    spec.seed = 11;
    spec.distribution = distribution;
    spec.compute_jitter = 0.1;
    double sum = 0, squares = 0;
    constexpr int kRanks = 40, kSteps = 500;
    for (int rank = 0; rank < kRanks; ++rank) {
      const RankImperfections of(spec, rank);
      for (int step = 0; step < kSteps; ++step) {
        const double factor = of.compute_factor(step);
        sum += factor;
        squares += factor * factor;
      }
    }
    const double mean = sum / (kRanks * kSteps);
    CHECK(mean == Approx(1).epsilon(0.003));
    CHECK(std::sqrt(squares / (kRanks * kSteps) - mean * mean) == Approx(0.1).epsilon(0.03));
    CHECK(RankImperfections(spec, 3).compute_factor(7) ==
          RankImperfections(spec, 3).compute_factor(7));
    CHECK(RankImperfections(spec, 3).compute_factor(7) !=
          RankImperfections(spec, 4).compute_factor(7));
    spec.seed = 12;
    CHECK(RankImperfections(spec, 3).compute_factor(7) != Approx(1).epsilon(1e-9));
  }
}

TEST_CASE("compute factors: these bits on every machine, and exactly 1 where nothing is drawn") {
  ImperfectionSpec spec;
  CHECK(RankImperfections(spec, 5).compute_factor(9) == 1);
  spec.seed = 42;
  spec.compute_spread = 0.25;
  spec.slow_ranks = {{{5}, 2}, {{}, 1.5}};
  const double of_5 = RankImperfections(spec, 5).compute_factor(0);
  const double of_6 = RankImperfections(spec, 6).compute_factor(0);
  CHECK(of_5 == RankImperfections(spec, 5).compute_factor(1000));  // its own, in every step
  spec.slow_ranks.clear();
  CHECK(of_5 == RankImperfections(spec, 5).compute_factor(0) * 2 * 1.5);
  CHECK(of_6 == RankImperfections(spec, 6).compute_factor(0) * 1.5);
  CHECK(RankImperfections(spec, 5).compute_factor(0) == 0x1.53b4442414f06p-1);
  CHECK(RankImperfections(spec, 6).compute_factor(0) == 0x1.6d364d2cd9be8p+0);
}

TEST_CASE("loader stalls: every n-th step, by chance, and added up") {
  ImperfectionSpec spec;
  spec.loader_stalls = {{{0}, 3, 1, Seconds{1}}, {{}, 1, 0.25, Seconds{10}}};
  int chance = 0;
  const RankImperfections of_0(spec, 0), of_1(spec, 1);
  for (int step = 0; step < 4000; ++step) {
    const double own = std::fmod(of_0.loader_stall(step).count(), 10);
    CHECK(own == ((step + 1) % 3 == 0 ? 1 : 0));
    if (of_1.loader_stall(step) > Seconds{0}) ++chance;
  }
  CHECK(chance == Approx(1000).margin(90));
  spec.late_ranks = {{{1}, Seconds{2}}, {{}, Seconds{3}}};
  CHECK(start_delay(spec, 0) == Seconds{3});
  CHECK(start_delay(spec, 1) == Seconds{5});
}

TEST_CASE("imperfections: what the world or the fidelity cannot do is refused") {
  const auto refuses = [](const std::string& more, const std::string& imperfections,
                          const std::string& pointer, const std::string& words) {
    const std::string text = "{" + more + R"("ranks": 4, "imperfections": )" + imperfections + "}";
    INFO(text);
    try {
      parse_scenario(text, "test.json", "");
      FAIL("was accepted");
    } catch (const ConfigError& error) {
      CHECK(error.details().pointer == "/imperfections/" + pointer);
      CHECK_THAT(error.what(), contains("test.json"));
      CHECK_THAT(error.what(), contains(words));
    }
  };
  const std::string sim = R"("backend": "sim", )";
  const std::string nodes = sim + R"("cluster": {"gpus_per_node": 1}, )";
  const std::string analytic = nodes + R"("simulation": {"fidelity": "analytic"}, )";
  refuses("", R"({"slow_ranks": [{"ranks": [1], "factor": 2}]})", "slow_ranks/0/factor", "replay");
  refuses("", R"({"compute": {"jitter": 0.1}})", "compute/jitter", "replay");
  refuses("", R"({"compute": {"while_communicating": 1.1}})", "compute/while_communicating", "sim");
  refuses("", R"({"links": [{"node": 1}]})", "links/0/node", "/backend is \"gloo\"");
  refuses("", R"({"traffic": [{}]})", "traffic/0/flows", "simulated");
  refuses(sim, R"({"late_ranks": [{"ranks": [0, 4]}]})", "late_ranks/0/ranks/1", "/ranks is 4");
  refuses(sim, R"({"traffic": [{}]})", "traffic/0/flows", "gpus_per_node");
  refuses(nodes, R"({"links": [{}]})", "links/0/link", "a node");
  refuses(nodes, R"({"links": [{"link": "nic-0-0", "node": 1}]})", "links/0/link", "a node");
  refuses(nodes, R"({"links": [{"node": 4}]})", "links/0/node", "4 nodes");
  refuses(nodes, R"({"links": [{"node": 0, "down": "1ms"}]})", "links/0/down",
          "a part of the period");
  refuses(nodes, R"({"traffic": [{"from": 1, "to": 1}]})", "traffic/0/to", "another node");
  refuses(nodes, R"({"traffic": [{"period": "1s"}]})", "traffic/0/on", "a part of the period");
  refuses(analytic, R"({"traffic": [{}]})", "traffic/0/flows", "analytic");
  refuses(analytic, R"({"links": [{"node": 0, "down": "1ms", "period": "1s"}]})", "links/0/down",
          "analytic");
  // And what can be done is accepted, and written back to the same.
  const Scenario s = parse_scenario(
      R"({"ranks": 4, "imperfections": {"seed": 3, "late_ranks": [{"ranks": [1], "duration": "2s"}],
          "loader_stalls": [{"every": 5, "duration": "1ms"}, {"probability": 0.5}]}})",
      "test.json", "");
  CHECK(s.imperfections.loader_stalls.size() == 2);
  CHECK(parse_scenario(to_json(s).dump(), "test.json", "") == s);
}

/// Three steps of three ranks; rank 2 comes to bucket 1 of each `late` later than the others.
std::vector<RankReport> with_late_rank(Seconds late) {
  std::vector<RankReport> reports;
  for (int rank = 0; rank < 3; ++rank) {
    reports.push_back(HandMadeRank(rank, 3).steps(3).finishes());
  }
  for (RankReport& report : reports) {
    for (auto* records : {&report.flight, &report.collectives}) {
      for (CollectiveRecord& record : *records) {
        if (record.label.bucket != 1) continue;
        record.completed += late;
        if (report.rank == 2) record.issued += late;
      }
    }
    for (StepRecord& step : report.steps) {
      step.optimizer_end += late;
      if (report.rank == 2) step.backward_compute_end += late;
    }
  }
  return reports;
}

TEST_CASE("blame: lateness costs what the step would be shorter without it") {
  Scenario scenario;
  scenario.ranks = 3;
  const auto blame_for = [&](Seconds late) {
    const auto reports = with_late_rank(late);
    return diagnosis::find_blame(diagnosis::make_digest(reports, scenario));
  };
  // Bucket 1 is issued when bucket 0 has ended, at 0.6 s, and takes 0.1 s; a step has 0.8 s.
  const diagnosis::Blame blame = blame_for(Seconds{0.2});
  CHECK(blame.steps == 2);
  CHECK(blame.saved.count() == Approx(0.2));
  CHECK(blame.cost == Approx(0.2 / 0.8));
  REQUIRE(blame.ranks.size() == 1);
  CHECK(blame.ranks[0].rank == 2);
  CHECK(blame.ranks[0].steps == 2);
  CHECK(blame.ranks[0].share == Approx(1));
  CHECK(blame.ranks[0].lateness.count() == Approx(0.2));
  CHECK(blame.ranks[0].phase == "backward");
  CHECK_THAT(diagnosis::describe(blame),
             contains("25.0% of a step (200 ms): rank 2 for 100% of it"));
  CHECK(blame_for(Seconds{0}).ranks.empty());
  CHECK(diagnosis::describe(blame_for(Seconds{0})).empty());
}

TEST_CASE("blame: a lateness that the network hides costs nothing") {
  Scenario scenario;
  scenario.ranks = 3;
  std::vector<RankReport> reports = with_late_rank(Seconds{0});
  for (RankReport& report : reports) {
    for (auto* records : {&report.flight, &report.collectives}) {
      for (CollectiveRecord& record : *records) {
        // Bucket 0 ends at 0.7 s only: rank 2 comes to bucket 1 in time for that.
        if (record.label.bucket == 0) record.completed += Seconds{0.1};
        if (record.label.bucket == 1) record.completed += Seconds{0.1};
        if (record.label.bucket == 1 && report.rank == 2) record.issued += Seconds{0.08};
      }
    }
  }
  const auto blame = diagnosis::find_blame(diagnosis::make_digest(reports, scenario));
  CHECK(blame.steps == 2);
  CHECK(blame.cost == Approx(0).margin(1e-12));
}

}  // namespace
}  // namespace gradsync
