// Whole scenarios in the simulator: the engine's training loop on simulated ranks.

#include <set>
#include <string>
#include <vector>

#include "gradsync/simulator/simulation.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/train_ranks.hpp"

using namespace gradsync;
using namespace gradsync::test;

namespace {

/// Parameter hashes after each step, by rank.
std::vector<std::vector<std::string>> hashes(const std::vector<RankReport>& reports) {
  std::vector<std::vector<std::string>> result;
  for (const RankReport& report : reports) {
    CHECK(report.error.empty());
    std::vector<std::string> rank;
    for (const StepRecord& step : report.steps) rank.push_back(step.parameter_hash);
    result.push_back(std::move(rank));
  }
  return result;
}

}  // namespace

TEST_CASE("training in the simulator has the hashes of training on real threads") {
  for (const std::int64_t ranks : {1, 2, 3, 4}) {
    Scenario scenario = tiny_scenario();
    scenario.ranks = ranks;
    const auto expected = hashes(train_ranks(scenario));
    CHECK(expected.front().size() >= 2);
    for (const Fidelity fidelity : {Fidelity::kMessage, Fidelity::kFlow}) {
      scenario.fidelity = fidelity;
      CHECK(hashes(run_simulated(scenario).reports) == expected);
    }
  }
}

TEST_CASE("a simulated run is charged for its compute and for its communication") {
  Scenario scenario = tiny_scenario();
  const Seconds usual = *run_simulated(scenario).simulated;
  CHECK(usual.count() > 0);
  Scenario slow_compute = scenario;
  slow_compute.cluster.compute_rate = {scenario.cluster.compute_rate.value / 100};
  CHECK(*run_simulated(slow_compute).simulated > usual);
  Scenario slow_network = scenario;
  slow_network.cluster.intra_node.latency = scenario.cluster.intra_node.latency * 10;
  CHECK(*run_simulated(slow_network).simulated > usual);
}

TEST_CASE("uneven shards hang in the simulator, and the reports show who waits for what") {
  Scenario scenario = tiny_scenario();
  scenario.ranks = 4;
  scenario.data.samples = 10;
  scenario.sampler.pad = false;
  scenario.train.batch_size = 1;
  const RunOutcome outcome = run_simulated(scenario);
  for (const RankReport& report : outcome.reports) {
    CHECK(report.error.empty());
    CHECK(report.steps_completed == 2);
    CHECK(report.steps.size() == 2);
    const bool ran_out = report.rank >= 2;
    CHECK(report.steps_planned == (ran_out ? 2 : 3));
    CHECK(report.state == (ran_out ? RankState::kFinished : RankState::kRunning));
    CHECK(report.phase == (ran_out ? Phase::kShutdown : Phase::kBackward));
    REQUIRE(!report.flight.empty());
    CHECK(report.flight.back().state ==
          (ran_out ? CollectiveState::kCompleted : CollectiveState::kStarted));
    if (!ran_out) {
      CHECK(report.flight.back().label.step == 2);
      CHECK(report.flight.back().label.bucket == 0);
      CHECK(report.ended == *outcome.simulated);
    }
    CHECK(report.collectives.size() >= 2);
  }
  scenario.sampler.drop_last = true;
  scenario.sampler.pad = true;
  for (const RankReport& report : run_simulated(scenario).reports) {
    CHECK(report.state == RankState::kFinished);
    CHECK(report.steps_completed == 2);
  }
}

TEST_CASE("progress is reported by rank 0, step by step") {
  Scenario scenario = tiny_scenario();
  std::vector<std::int64_t> steps;
  const RunOutcome outcome =
      run_simulated(scenario, training_body(scenario),
                    [&](const nlohmann::ordered_json& step) { steps.push_back(step.at("step")); });
  CHECK(static_cast<std::int64_t>(steps.size()) == outcome.reports[0].steps_completed);
  for (std::size_t i = 0; i < steps.size(); ++i) CHECK(steps[i] == static_cast<std::int64_t>(i));
}

TEST_CASE("a scenario with more ranks than GPUs is refused before anything runs") {
  Scenario scenario = tiny_scenario();
  scenario.cluster.nodes = 1;
  scenario.cluster.gpus_per_node = 1;
  CHECK_THROWS_AS(run_simulated(scenario), ConfigError);
}

TEST_CASE("an average by the simulated collective costs what the sum costs, and is the mean") {
  Scenario scenario = tiny_scenario();
  scenario.cluster.library = ClusterSpec::Library::kNccl;
  const RunOutcome predivided = run_simulated(scenario);
  scenario.ddp.gradient_mean = GradientMean::kAverage;
  const RunOutcome averaged = run_simulated(scenario);
  CHECK(hashes(averaged.reports) == hashes(predivided.reports));  // of two ranks: halves are exact
  // SimGrid's clock goes on between the two runs, which costs last digits.
  CHECK(averaged.simulated->count() == Approx(predivided.simulated->count()));
}
