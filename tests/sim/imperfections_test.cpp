// Imperfections in the simulator: what each does to a step, and who is named for it.

#include "gradsync/simulator/simulation.hpp"

#include <cmath>
#include <set>

#include <nlohmann/json.hpp>

#include "gradsync/core/error.hpp"
#include "gradsync/simulator/world/network_imperfections.hpp"
#include "gradsync/testbed/result/run_result.hpp"
#include "tests/sim/sim_support.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/paths.hpp"

using namespace gradsync;
using namespace gradsync::test;

namespace {

/// Ten tensors replayed on `ranks` nodes of one GPU each; `more` is text of the scenario.
Scenario replayed(int ranks, const std::string& imperfections, const std::string& more = "") {
  return parse_scenario(
      R"({"backend": "sim", "ranks": )" + std::to_string(ranks) +
          R"(, "model": {"kind": "replay", "profile": "scenarios/models/ten-tensors.json"},
              "data": {"kind": "indices", "samples": 100000}, "train": {"max_steps": 9},
              "ddp": {"bucket_cap_mb": 0.5},
              "cluster": {"gpus_per_node": 1, "intra_node": {"bandwidth": "100GBps", "latency": "0us"},
                          "inter_node": {"bandwidth": "10GBps", "latency": "5us"}})" +
          more + R"(, "imperfections": )" + imperfections + "}",
      "test.json", gradsync::test::source_dir());
}

struct Run {
  RunOutcome outcome;
  RunResult result;
  double p50() const { return *result.steady_step_seconds.p50; }
};

Run run(const Scenario& scenario) {
  Run run;
  run.outcome = run_simulated(scenario);
  run.result = make_result(scenario, run.outcome);
  CHECK(run.result.outcome == Outcome::kCompleted);
  return run;
}

/// The lengths of all steps: equal in each run of a process, unlike dates (SimEngine).
std::vector<double> step_lengths(const RunOutcome& outcome) {
  std::vector<double> list;
  for (const RankReport& report : outcome.reports) {
    for (const StepRecord& step : report.steps) {
      list.push_back((step.optimizer_end - step.begin).count());
    }
  }
  return list;
}

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest;
}

constexpr Fidelity kAll[] = {Fidelity::kMessage, Fidelity::kFlow, Fidelity::kAnalytic};

}  // namespace

TEST_CASE("a rank that computes twice as long makes the step as long as its own, and is blamed") {
  for (const Fidelity fidelity : kAll) {
    Scenario even = replayed(4, "{}");
    Scenario uneven = replayed(4, R"({"slow_ranks": [{"ranks": [2], "factor": 2}]})");
    Scenario slow = replayed(4, R"({"slow_ranks": [{"factor": 2}]})");
    even.fidelity = uneven.fidelity = slow.fidelity = fidelity;
    const Run of_even = run(even);
    const Run of_uneven = run(uneven);
    const Run of_slow = run(slow);
    // Not 0: broadcasts from rank 0 leave the ranks of a tree at different times.
    CHECK(of_even.result.blame.cost == Approx(0).margin(1e-3));
    CHECK(of_uneven.p50() > 1.5 * of_even.p50());
    CHECK(of_uneven.p50() == Approx(of_slow.p50()).epsilon(0.03));
    const diagnosis::Blame& blame = of_uneven.result.blame;
    REQUIRE_FALSE(blame.ranks.empty());
    CHECK(blame.ranks[0].rank == 2);
    CHECK(blame.ranks[0].share > 0.99);
    // Without the lateness the steps would be those of the even ranks.
    CHECK(of_uneven.p50() / of_even.p50() - 1 == Approx(blame.cost).epsilon(0.1));
    CHECK_THAT(diagnosis::describe(blame), contains("rank 2 for 100% of it, behind in "));
  }
}

TEST_CASE("one rank stands for all only where imperfections leave them alike") {
  const auto stands_for_all = [](const std::string& imperfections) {
    Scenario scenario = replayed(6, imperfections);
    scenario.fidelity = Fidelity::kAnalytic;
    return run_simulated(scenario).notes.front().find("rank 0 stands for them") !=
           std::string::npos;
  };
  CHECK(stands_for_all("{}"));
  CHECK(stands_for_all(R"({"slow_ranks": [{"factor": 1.5}], "compute": {"while_communicating": 1.2},
                           "loader_stalls": [{"duration": "1ms"}]})"));
  CHECK_FALSE(stands_for_all(R"({"slow_ranks": [{"ranks": [1], "factor": 1.5}]})"));
  CHECK_FALSE(stands_for_all(R"({"compute": {"jitter": 0.1}})"));
  CHECK_FALSE(stands_for_all(R"({"loader_stalls": [{"probability": 0.5, "duration": "1ms"}]})"));
}

TEST_CASE("the same seed gives the same steps, another one others, and sigma 0 none of it") {
  const auto with = [](const std::string& imperfections) {
    return run_simulated(replayed(4, imperfections));
  };
  const std::string jitter = R"("compute": {"jitter": 0.1, "spread": 0.05})";
  const auto seven = with("{\"seed\": 7, " + jitter + "}");
  CHECK(largest_difference(step_lengths(seven),
                           step_lengths(with("{\"seed\": 7, " + jitter + "}"))) < 1e-12);
  CHECK(largest_difference(step_lengths(seven),
                           step_lengths(with("{\"seed\": 8, " + jitter + "}"))) > 1e-5);
  // To the last digits of a clock that is never set back; to the bit in tests/cli.
  const auto none = with(R"({"seed": 7, "compute": {"jitter": 0, "spread": 0}})");
  CHECK(largest_difference(step_lengths(none), step_lengths(with("{}"))) < 1e-13);
}

TEST_CASE("jitter makes p95 longer than p50, and blames no rank alone") {
  Scenario scenario = replayed(8, R"({"compute": {"jitter": 0.1}})");
  scenario.train.max_steps = 60;
  const Run jittery = run(scenario);
  scenario.imperfections = {};
  const Run even = run(scenario);
  CHECK(jittery.result.steady_step_seconds.steps == 59);
  CHECK(*jittery.result.steady_step_seconds.p95 > 1.03 * jittery.p50());
  CHECK(jittery.p50() > 1.05 * even.p50());  // the slowest of eight, not the mean
  CHECK(*even.result.steady_step_seconds.p95 == Approx(even.p50()));
  CHECK(jittery.result.blame.ranks.size() >= 6);
  CHECK(jittery.result.blame.ranks[0].share < 0.5);
  CHECK_THAT(diagnosis::describe(jittery.result.blame), contains("spread over"));
}

TEST_CASE("a loader that stalls costs its rank's stall, in data, in the steps that it says") {
  const Run stalled =
      run(replayed(4, R"({"loader_stalls": [{"ranks": [1], "every": 4, "duration": "50ms"}]})"));
  const Run even = run(replayed(4, "{}"));
  const std::vector<StepRecord>& steps = stalled.outcome.reports[1].steps;
  for (const StepRecord& step : steps) {
    const bool due = step.step == 3 || step.step == 7;
    CHECK((step.data_end - step.begin).count() == Approx(due ? 0.05 : 0).margin(1e-12));
  }
  REQUIRE_FALSE(stalled.result.blame.ranks.empty());
  CHECK(stalled.result.blame.ranks[0].rank == 1);
  CHECK(stalled.result.blame.ranks[0].share > 0.99);
  CHECK(stalled.result.blame.ranks[0].phase == "data");
  CHECK(stalled.result.blame.ranks[0].steps == 2);
  CHECK(stalled.result.blame.ranks[0].lateness.count() == Approx(0.05));
  CHECK((*stalled.outcome.simulated - *even.outcome.simulated).count() == Approx(0.1));
}

TEST_CASE("a rank that starts late is named, and costs no step") {
  const Run late = run(replayed(4, R"({"late_ranks": [{"ranks": [3], "duration": "2s"}]})"));
  REQUIRE(late.result.blame.start);
  CHECK(late.result.blame.start->rank == 3);
  CHECK(late.result.blame.start->late.count() == Approx(2));
  CHECK(late.result.blame.cost == Approx(0).margin(1e-3));
}

TEST_CASE("compute beside communication is stretched exactly, and no longer than that lasts") {
  // An all-reduce of about a second is issued at 1 s, and ends at E; beside it 3 s of compute, in
  // two pieces. With a factor of 2, (E - 1) / 2 of it is done at E, and the rest takes its own
  // time.
  struct Times {
    double compute_end = 0;
    double allreduce_end = 0;
  };
  const auto times_of = [](Fidelity fidelity, double factor, double compute) {
    SimulationOptions options = with_fidelity(fidelity);
    options.imperfections.while_communicating = factor;
    Times times;
    const RunOutcome outcome = simulate(one_switch(2, Seconds(0), 4e9), 2, options,
                                        [&](const RankRuntime& runtime, RankReport& report) {
                                          Clock& clock = *runtime.clock;
                                          clock.advance(Seconds(1));
                                          const WorkPtr work = runtime.process_group->allreduce(
                                              meta(1'000'000'000), ReduceOp::kSum, {});
                                          clock.advance(Seconds(0.25 * compute));
                                          clock.advance(Seconds(0.75 * compute));
                                          if (report.rank == 0)
                                            times.compute_end = clock.now().count();
                                          work->wait();
                                        });
    times.allreduce_end = outcome.reports[0].flight[0].completed.count();
    CHECK(times.allreduce_end == Approx(2).epsilon(1e-5));
    return times;
  };
  for (const Fidelity fidelity : kAll) {
    CHECK(times_of(fidelity, 1, 3).compute_end == Approx(4).epsilon(1e-12));
    const Times longer = times_of(fidelity, 2, 3);
    const double end = longer.allreduce_end;
    CHECK(longer.compute_end == Approx(end + 3 - (end - 1) / 2).epsilon(1e-12));
    CHECK(times_of(fidelity, 2, 0.375).compute_end ==
          Approx(1.75).epsilon(1e-12));  // all beside it
  }
}

TEST_CASE("a factor of 1 beside communication changes nothing, and above 1 lengthens backward") {
  const auto backward = [](const std::string& factor) {
    const Run of = run(replayed(4, R"({"compute": {"while_communicating": )" + factor + "}}"));
    return *of.result.time_breakdown.backward_compute;
  };
  const double plain = *run(replayed(4, "{}")).result.time_breakdown.backward_compute;
  CHECK(backward("1") == Approx(plain).epsilon(1e-12));
  CHECK(backward("1.5") > plain * 1.01);
  CHECK(backward("1.5") < plain * 1.5);
}

TEST_CASE("a slow link is the busiest, by its name, and sets the pace in every fidelity") {
  for (const Fidelity fidelity : kAll) {
    Scenario even = replayed(4, "{}");
    Scenario slowed = replayed(4, R"({"links": [{"link": "nic-2-0", "factor": 0.25}]})");
    Scenario by_node = replayed(4, R"({"links": [{"node": 2, "factor": 0.25}]})");
    Scenario all_slow = replayed(4, "{}", R"(, "name": "slow")");
    all_slow.cluster.inter_node.bandwidth.value /= 4;
    even.fidelity = slowed.fidelity = by_node.fidelity = all_slow.fidelity = fidelity;
    const Run slow = run(slowed);
    CHECK(slow.p50() > run(even).p50() * 1.005);
    CHECK(slow.p50() == Approx(run(by_node).p50()));
    CHECK(slow.p50() == Approx(run(all_slow).p50()).epsilon(0.02));
    if (fidelity == Fidelity::kAnalytic) {
      CHECK(slow.result.network.links.empty());
      continue;
    }
    const LinkLoad& busiest = slow.result.network.links.front();
    CHECK_THAT(busiest.name, contains("nic-2-0"));
    CHECK_THAT(busiest.condition, contains("at 0.25 of its bandwidth"));
    CHECK_THAT(describe_busiest(slow.result.network), contains("nic-2-0"));
  }
}

TEST_CASE("more latency on a link is paid by what passes it") {
  const double plain = run(replayed(2, "{}")).p50();
  const double slow =
      run(replayed(2, R"({"links": [{"link": "nic-1-0", "latency": "100us"}]})")).p50();
  // Of the two hops of a ring of two each passes the link: 2 (n - 1) steps for the last bucket.
  CHECK(slow - plain >= 2 * 100e-6);
}

TEST_CASE("a link that is down for a part of every period costs that part of its bandwidth") {
  for (const Fidelity fidelity : {Fidelity::kMessage, Fidelity::kFlow}) {
    SimulationOptions options = with_fidelity(fidelity);
    const auto time = [&] {
      ClusterSpec cluster = one_switch(1);
      cluster.nodes = 2;
      cluster.intra_node = {{1e12}, Seconds(0)};
      cluster.inter_node = {{1e9}, Seconds(0)};
      const RunOutcome outcome =
          simulate(cluster, 2, options, [&](const RankRuntime& runtime, RankReport&) {
            runtime.process_group->allreduce(meta(500'000'000), ReduceOp::kSum, {})->wait();
          });
      CHECK(outcome.reports[0].state == RankState::kFinished);
      return outcome.simulated->count();
    };
    CHECK(time() == Approx(2));
    options.imperfections.links.push_back(
        {.link = "nic-0-0", .node = {}, .down = Seconds(0.25), .period = Seconds(1)});
    CHECK(time() == Approx(2 + 0.25 * 2).epsilon(0.01));
  }
}

TEST_CASE("traffic of others takes its rate, and leaves the job the rest") {
  for (const Fidelity fidelity : {Fidelity::kMessage, Fidelity::kFlow}) {
    SimulationOptions options = with_fidelity(fidelity);
    NetworkLoad load;
    const auto time = [&] {
      ClusterSpec cluster = one_switch(1);
      cluster.nodes = 2;
      cluster.intra_node = {{1e12}, Seconds(0)};
      cluster.inter_node = {{1e9}, Seconds(0)};
      RunOutcome outcome =
          simulate(cluster, 2, options, [&](const RankRuntime& runtime, RankReport&) {
            runtime.process_group->allreduce(meta(500'000'000), ReduceOp::kSum, {})->wait();
          });
      load = outcome.network;
      return outcome.simulated->count();
    };
    CHECK(time() == Approx(2));
    CHECK(load.links.front().use == Approx(1).epsilon(0.01));
    ImperfectionSpec::Traffic half;
    half.from = 0;
    half.to = 1;
    half.rate = BytesPerSecond{0.5e9};
    options.imperfections.traffic = {half};
    CHECK(time() == Approx(4).epsilon(0.01));
    CHECK(load.links.front().bytes == Approx(2e9).epsilon(0.01));
    CHECK(load.links.front().bytes_of_others == Approx(2e9).epsilon(0.01));
    CHECK(load.links.front().use_by_others == Approx(0.5).epsilon(0.01));
    // Half of the time at all that it gets, which is half: a quarter of the bandwidth.
    options.imperfections.traffic = {half};
    options.imperfections.traffic[0].rate.reset();
    options.imperfections.traffic[0].on = Seconds(0.01);
    options.imperfections.traffic[0].period = Seconds(0.02);
    CHECK(time() == Approx(2 / 0.75).epsilon(0.02));
  }
}

TEST_CASE("message and flow agree on a cluster with imperfections") {
  const std::string all = R"({"seed": 5, "compute": {"jitter": 0.05, "while_communicating": 1.2},
      "slow_ranks": [{"ranks": [1], "factor": 1.3}],
      "links": [{"link": "nic-3-0", "factor": 0.5}],
      "traffic": [{"flows": 3, "rate": "2GBps"}, {"from": 0, "to": 3, "on": "3ms", "period": "10ms"}]})";
  Scenario scenario = replayed(6, all);
  scenario.fidelity = Fidelity::kMessage;
  const double messages = run(scenario).p50();
  scenario.fidelity = Fidelity::kFlow;
  CHECK(run(scenario).p50() == Approx(messages).epsilon(0.05));
}

TEST_CASE("traffic and flapping links hide no deadlock, and end with the job") {
  Scenario scenario = replayed(4, R"({"traffic": [{"flows": 4}],
      "links": [{"node": 1, "down": "1ms", "period": "5ms"}],
      "late_ranks": [{"ranks": [0], "duration": "10ms"}]})");
  const Run healthy = run(scenario);
  CHECK(healthy.outcome.simulated->count() < 1);
  scenario.faults = {{.ranks = {2}, .kind = LeaveLoopFault{.step = 4}}};
  const RunOutcome hung = run_simulated(scenario);
  const RunResult result = make_result(scenario, hung);
  CHECK(result.outcome == Outcome::kHang);
  CHECK(hung.simulated->count() < healthy.outcome.simulated->count());
}

TEST_CASE("what is drawn of the traffic depends on the seed alone, and joins different nodes") {
  ImperfectionSpec spec;
  spec.seed = 3;
  spec.traffic.resize(2);
  spec.traffic[0].flows = 50;
  spec.traffic[1].flows = 50;
  spec.traffic[1].to = 2;
  const auto flows = draw_traffic(spec, 5);
  REQUIRE(flows.size() == 100);
  std::set<std::int64_t> from;
  for (const TrafficFlow& flow : flows) {
    CHECK(flow.from != flow.to);
    CHECK(flow.from < 5);
    CHECK(flow.to < 5);
    from.insert(flow.from);
  }
  CHECK(from.size() == 5);
  CHECK(flows[70].to == 2);
  const auto again = draw_traffic(spec, 5);
  spec.seed = 4;
  const auto other = draw_traffic(spec, 5);
  int equal = 0;
  for (std::size_t i = 0; i < flows.size(); ++i) {
    CHECK(again[i].from == flows[i].from);
    equal += other[i].from == flows[i].from ? 1 : 0;
  }
  CHECK(equal < 60);
}

TEST_CASE(
    "auto does not take a closed form that cannot answer, and one that is asked for refuses") {
  const auto refuses = [](const std::string& imperfections, const std::string& pointer) {
    try {
      run_simulated(replayed(4, imperfections, R"(, "simulation": {"fidelity": "analytic"})"));
      FAIL("was accepted");
    } catch (const ConfigError& error) {
      CHECK(error.details().file == "test.json");
      CHECK(error.details().pointer == pointer);
    }
  };
  refuses(R"({"traffic": [{}]})", "/imperfections/traffic/0/flows");
  refuses(R"({"links": [{"node": 0, "down": "1ms", "period": "1s"}]})",
          "/imperfections/links/0/down");
  refuses(R"({"links": [{"link": "nic-0-0"}, {"link": "nik-0-0"}]})",
          "/imperfections/links/1/link");
}
