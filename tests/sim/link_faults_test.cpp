// The fault `link`: outages, less bandwidth and lost packets, for a while.
#include <cmath>

#include "gradsync/core/error.hpp"
#include "gradsync/simulator/kernel/packet_loss.hpp"
#include "gradsync/simulator/simulation.hpp"
#include "gradsync/testbed/diagnosis/stragglers.hpp"
#include "gradsync/testbed/result/run_result.hpp"
#include "tests/sim/sim_support.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/paths.hpp"

using namespace gradsync;
using namespace gradsync::test;

namespace {

/// Two nodes of one rank and 1 GB/s between them.
ClusterSpec two_nodes(Seconds latency = Seconds(0)) {
  ClusterSpec cluster = one_switch(1);
  cluster.nodes = 2;
  cluster.intra_node = {{1e12}, Seconds(0)};
  cluster.inter_node = {{1e9}, latency};
  return cluster;
}

FaultSpec link_fault(Seconds begin, Seconds lasts, double factor, double loss_percent = 0) {
  LinkFault fault;
  fault.node = 1;
  fault.duration = begin;
  fault.lasts = lasts;
  fault.factor = factor;
  fault.loss_percent = loss_percent;
  return {.ranks = {}, .kind = fault};
}

/// An all-reduce of 2 GB: 2 s where nothing is wrong.
double seconds_with(const std::vector<FaultSpec>& faults, Fidelity fidelity,
                    Seconds latency = Seconds(0)) {
  SimulationOptions options = with_fidelity(fidelity);
  options.faults = faults;
  options.timeout = Seconds(1000);
  const RunOutcome outcome =
      simulate(two_nodes(latency), 2, options, [](const RankRuntime& runtime, RankReport&) {
        runtime.process_group->allreduce(meta(500'000'000), ReduceOp::kSum, {})->wait();
      });
  CHECK(outcome.reports[0].state == RankState::kFinished);
  return outcome.simulated->count();
}

/// Training steps of a fraction of a millisecond, the link of node 1 as `fault` says.
Scenario training(const std::string& fault, const std::string& more = "") {
  return parse_scenario(
      R"({"backend": "sim", "ranks": 4, "timeout": "3s",
          "model": {"kind": "transformer", "vocab_size": 64, "d_model": 16, "nhead": 2,
                    "num_layers": 1, "dim_feedforward": 32},
          "data": {"kind": "synthetic_tokens", "samples": 64, "seq_len": 8, "vocab_size": 64},
          "train": {"batch_size": 4, "epochs": 10},
          "cluster": {"nodes": 4, "gpus_per_node": 1}, "faults": [{"kind": "link", )" +
          fault + "}]" + more + "}",
      "test.json", "");
}

}  // namespace

TEST_CASE("link: what an outage and a narrow link cost is what could not pass meanwhile") {
  for (const Fidelity fidelity : {Fidelity::kMessage, Fidelity::kFlow}) {
    const auto time = [&](const std::vector<FaultSpec>& faults) {
      return seconds_with(faults, fidelity);
    };
    CHECK(time({}) == Approx(2));
    CHECK(time({link_fault(Seconds(1), Seconds(0.5), 0)}) == Approx(2.5));
    // Down from the start: nothing begins before the link is there.
    CHECK(time({link_fault(Seconds(0), Seconds(0.5), 0)}) == Approx(2.5));
    CHECK(time({link_fault(Seconds(0.5), Seconds(1), 0.25)}) == Approx(2.75));
    // What starts while the link is narrow is not narrow for ever.
    CHECK(time({link_fault(Seconds(0), Seconds(1), 0.25)}) == Approx(2.75));
    // For ever.
    CHECK(time({link_fault(Seconds(1), Seconds(0), 0.5)}) == Approx(3));
    // Faults of one link compose: half the bandwidth for 2 s, of which 0.5 s there is none.
    CHECK(time({link_fault(Seconds(0.5), Seconds(2), 0.5),
                link_fault(Seconds(1), Seconds(0.5), 0)}) == Approx(2 + 0.75 + 0.5));
    // Two outages that overlap are one.
    CHECK(time({link_fault(Seconds(0.5), Seconds(0.5), 0),
                link_fault(Seconds(0.75), Seconds(0.75), 0)}) == Approx(3));
  }
}

TEST_CASE("link: a message without bytes does not pass a link that is down") {
  const auto end = [](const std::vector<FaultSpec>& faults) {
    SimulationOptions options = with_fidelity(Fidelity::kMessage);
    options.faults = faults;
    options.timeout = Seconds(5);
    const RunOutcome outcome =
        simulate(two_nodes(), 2, options, [](const RankRuntime& runtime, RankReport&) {
          runtime.clock->advance(Seconds(1));
          runtime.process_group->barrier({})->wait();
        });
    return outcome.reports[0].state == RankState::kFinished ? outcome.simulated->count() : -1;
  };
  CHECK(end({}) == Approx(1));
  CHECK(end({link_fault(Seconds(0.5), Seconds(2), 0)}) == Approx(2.5));
  CHECK(end({link_fault(Seconds(0.5), Seconds(0), 0)}) == -1);
}

TEST_CASE("link: the limit of a TCP connection that loses packets is Mathis's") {
  // 1460 B / 100 ms * sqrt(1.5 / 0.01), by hand
  CHECK(tcp_limit(0.01, Seconds(0.1)).value == Approx(178812.8).epsilon(1e-6));
  CHECK(tcp_limit(0.04, Seconds(0.1)).value == Approx(178812.8 / 2).epsilon(1e-6));
  CHECK(std::isinf(tcp_limit(0, Seconds(0.1)).value));

  const std::vector<LossPeriod> losses = {{Seconds(1), Seconds(2), 0.01}};
  const auto end = [&](double begin, double bytes) {
    return end_of_sending(losses, Seconds(0.1), {1e6}, Seconds(begin), bytes).count();
  };
  CHECK(end(0, 5e5) == Approx(0.5));
  CHECK(end(0, 1e6 + 178812.8 / 2) == Approx(1.5));
  CHECK(end(0.5, 5e5 + 178812.8 + 1e6) == Approx(3));
  CHECK(end(2, 1e6) == Approx(3));
  // Two links lose independently: 1 - 0.99^2.
  const std::vector<LossPeriod> both = {losses[0], losses[0]};
  CHECK(end_of_sending(both, Seconds(0.1), {1e6}, Seconds(1), 1000).count() ==
        Approx(1 + 1000 / tcp_limit(0.0199, Seconds(0.1)).value));
}

TEST_CASE("link: a flow over a lossy link takes what the limit gives, as long as it is lossy") {
  const Seconds latency(0.005);
  // A round trip passes four cables; two steps of 1 GB, each at the limit and then a way.
  const double limit = tcp_limit(0.0001, 4 * latency).value;
  for (const Fidelity fidelity : {Fidelity::kMessage, Fidelity::kFlow}) {
    const double clear = seconds_with({}, fidelity, latency);
    CHECK(clear == Approx(2 + 2 * 2 * latency.count()));
    const double lossy =
        seconds_with({link_fault(Seconds(0), Seconds(0), 1, 0.01)}, fidelity, latency);
    CHECK(lossy == Approx(2e9 / limit + 2 * 2 * latency.count()).epsilon(1e-3));
    const double for_a_while =
        seconds_with({link_fault(Seconds(0), Seconds(100), 1, 0.01)}, fidelity, latency);
    CHECK(for_a_while < lossy);
    CHECK(for_a_while > 100);
  }
}

TEST_CASE("link: a job survives an outage, and its report says what it cost, where and why") {
  for (const char* fidelity : {"message", "flow"}) {
    const std::string simulation =
        std::string(R"(, "simulation": {"fidelity": ")") + fidelity + R"("})";
    const Scenario scenario =
        training(R"("node": 1, "factor": 0, "duration": "20ms", "lasts": "2s")", simulation);
    const RunOutcome outcome = run_simulated(scenario);
    const RunResult result = make_result(scenario, outcome);
    CHECK(result.outcome == Outcome::kCompleted);
    REQUIRE(result.blame.network.size() == 1);
    const diagnosis::Blame::Network& cost = result.blame.network.front();
    CHECK(cost.what == "the cables of node 1 were down from 20ms to 2.02s");
    CHECK(cost.steps == 1);
    CHECK(cost.lost.count() == Approx(2).epsilon(0.01));
    CHECK_THAT(diagnosis::describe_arrivals(outcome.reports, scenario),
               contains("slow network cost 2 s in step " + std::to_string(cost.longest) +
                        ": the cables of node 1 were down"));
  }
}

TEST_CASE("link: an outage longer than the timeout is named; one that comes later is not") {
  const auto diagnosed = [](const std::string& fault) {
    const Scenario scenario = training(fault);
    return diagnose(run_simulated(scenario).reports, scenario);
  };
  const auto found =
      diagnosed(R"("link": "nic-1-0", "factor": 0, "duration": "20ms", "lasts": "10s")");
  REQUIRE(found.has_value());
  CHECK(found->verdict == "deadlock");
  CHECK(found->kind == DiagnosisKind::kNetwork);
  CHECK(found->first_cause == "link nic-1-0 is down from 20ms to 10.02s");
  CHECK_FALSE(diagnosed(R"("node": 1, "factor": 0, "duration": "20s")").has_value());
}

TEST_CASE("link: a name that no link has is refused, with one that is like it") {
  try {
    run_simulated(training(R"("link": "nik-1-0")"));
    FAIL("was accepted");
  } catch (const ConfigError& error) {
    CHECK(error.details().pointer == "/faults/0/link");
    CHECK_THAT(error.what(), contains("nic-1-0"));
  }
}

TEST_CASE("link: what a failed job still had under way on a lossy link is not waited for") {
  // Rank 1 gives up waiting; rank 0 never leaves its clean-up, so the simulation lasts as long as
  // anything is to come. 20% of lost packets leave some kilobytes a second.
  const Scenario scenario = parse_scenario(
      R"({"backend": "sim", "ranks": 2, "timeout": "200ms",
          "model": {"kind": "replay", "profile": ")" +
          gradsync::test::source_dir() +
          R"(/scenarios/models/ten-tensors.json"},
          "data": {"kind": "indices", "samples": 64}, "train": {"batch_size": 4},
          "cluster": {"nodes": 2, "gpus_per_node": 1,
                      "inter_node": {"bandwidth": "10Mbps", "latency": "30ms"}},
          "faults": [{"kind": "link", "node": 1, "duration": "0s", "loss_percent": 20},
                     {"kind": "stall", "ranks": [0], "at": "clean_up"}]})",
      "test.json", "");
  const RunOutcome outcome = run_simulated(scenario);
  CHECK(outcome.reports[1].state != RankState::kFinished);
  CHECK(outcome.simulated->count() < 3);
}
