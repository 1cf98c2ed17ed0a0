// `gradsync bench allreduce` on a real backend and simulated.
#include "gradsync/predict/bench_log.hpp"
#include "tests/cli/command.hpp"
#include "tests/support/catch.hpp"

using namespace gradsync::test;

TEST_CASE("bench allreduce prints nccl-tests' table, checked, on Gloo and in sim") {
  for (const std::string backend : {"gloo", "sim"}) {
    INFO(backend);
    const CommandResult bench =
        run_command({"bench", "allreduce", "--backend", backend, "--ranks", "3", "-b", "8", "-e",
                     "4K", "-f", "8", "-n", "2", "-w", "1"});
    INFO(bench.err);
    REQUIRE(bench.exit_status == 0);
    CHECK_THAT(bench.out, contains("#wrong"));
    CHECK_THAT(bench.out, contains("Out of bounds values : 0 OK"));
    CHECK_THAT(bench.out, contains("Avg bus bandwidth"));
    const auto table = gradsync::read_bench_log(bench.out, backend);
    CHECK(table.ranks == 3);
    REQUIRE(table.rows.size() == 4);
    CHECK(table.rows[3].bytes == 4096);
    for (const auto& row : table.rows) {
      CHECK(row.wrong == 0);
      CHECK(row.time.count() > 0);
    }
  }
}

TEST_CASE(
    "bench allreduce --json in sim: the time of the ring on the cluster that --set describes") {
  const CommandResult bench = run_command(
      {"bench", "allreduce", "--backend", "sim", "--ranks", "4", "-b", "1M", "-e", "1M", "--set",
       "cluster.intra_node.bandwidth=1GBps", "--set", "cluster.intra_node.latency=5us", "--json"});
  REQUIRE(bench.exit_status == 0);
  const auto row = bench.json().at("results").at(0);
  // 2(n-1) steps of two links' latency and a quarter of the bytes.
  const double expected_us = 6 * (2 * 5 + 1048576 / 4 / 1e3);
  CHECK(row.at("in_place").at("time").get<double>() == Approx(expected_us).epsilon(0.001));
  CHECK(row.at("in_place").at("nwrong") == 0);
}

namespace {

using Assignments = std::vector<std::string>;

CommandResult bench_with(const std::string& backend, const Assignments& assignments) {
  std::vector<std::string> arguments = {"bench", "allreduce", "--backend", backend, "--ranks", "4",
                                        "-b",    "1M",        "-e",        "1M",    "--json"};
  for (const std::string& assignment : assignments) {
    arguments.insert(arguments.end(), {"--set", assignment});
  }
  return run_command(arguments);
}

/// Of one all-reduce of 1 MiB between two nodes of two ranks, in microseconds.
double simulated_time(Assignments assignments) {
  assignments.emplace_back("cluster.gpus_per_node=2");
  const CommandResult bench = bench_with("sim", assignments);
  INFO(bench.err);
  REQUIRE(bench.exit_status == 0);
  CHECK(bench.json().at("out_of_bounds").at("okay") == true);
  return bench.json().at("results").at(0).at("in_place").at("time").get<double>();
}

}  // namespace

TEST_CASE("a simulated bench has the faults and imperfections of its network") {
  for (const std::string fidelity : {"message", "flow", "analytic"}) {
    CAPTURE(fidelity);
    const std::string set = "simulation.fidelity=" + fidelity;
    const double even = simulated_time({set});
    const double slow_link =
        simulated_time({set, R"(imperfections.links=[{"link":"nic-0-0","factor":0.5}])"});
    CHECK(slow_link > 1.3 * even);
    const double latency =
        simulated_time({set, R"(imperfections.links=[{"node":1,"latency":"1ms"}])"});
    // A ring's 2(n-1) steps each wait for the slowest hop.
    CHECK(latency - even == Approx(6 * 1000).epsilon(0.2));
    if (fidelity == "analytic") continue;  // it has no cables that change, and says so
    for (const std::string other :
         {R"(imperfections.links=[{"node":1,"down":"1ms","period":"2ms"}])",
          R"(imperfections.traffic=[{"flows":4}])",
          R"(faults=[{"kind":"link","node":1,"factor":0.5}])",
          R"(faults=[{"kind":"link","node":1,"loss_percent":1}])"}) {
      CAPTURE(other);
      CHECK(simulated_time({set, other}) > 1.2 * even);
    }
  }
}

TEST_CASE("a bench waits for its straggler, simulated or not") {
  constexpr double kLateUs = 30e3;
  const std::string stall = R"(imperfections.loader_stalls=[{"ranks":[1],"duration":"30ms"}])";
  const std::string delay = R"(faults=[{"kind":"delay","ranks":[1],"steps":0,"duration":"30ms"}])";
  const double even = simulated_time({});
  for (const std::string& straggler : {stall, delay}) {
    CAPTURE(straggler);
    CHECK(simulated_time({straggler}) == Approx(even + kLateUs).epsilon(0.02));
    const CommandResult real = bench_with("gloo", {straggler, "timeout=60s"});
    INFO(real.err);
    REQUIRE(real.exit_status == 0);
    CHECK(real.json().at("results").at(0).at("in_place").at("time").get<double>() >= kLateUs);
  }
  // One step is one all-reduce: the second of two is in time.
  const std::string once = R"(faults=[{"kind":"delay","ranks":[1],"step":1,"duration":"30ms"}])";
  CHECK(simulated_time({once}) == Approx(even));
}

TEST_CASE("a bench whose ranks do not find each other fails, and says which") {
  const CommandResult late = bench_with(
      "sim", {R"(imperfections.late_ranks=[{"ranks":[1],"duration":"40s"}])", "timeout=10s"});
  CHECK(late.exit_status == 4);
  CHECK_THAT(late.err, contains("timed out after 10s"));
  const CommandResult lost =
      bench_with("sim", {R"(faults=[{"kind":"rendezvous","ranks":[2],"wrong_address":true}])"});
  CHECK(lost.exit_status == 4);
  CHECK_THAT(lost.err, contains("could not connect to rank 2"));
}

TEST_CASE("a bench says under which faults and imperfections it was measured") {
  const CommandResult bench = bench_with(
      "sim", {"cluster.gpus_per_node=2", R"(imperfections.traffic=[{"flows":4}])",
              R"(imperfections.late_ranks=[{"ranks":[1],"duration":"1s"}])",
              R"(faults=[{"kind":"link","node":1},{"kind":"delay"},{"kind":"link","node":0}])"});
  REQUIRE(bench.exit_status == 0);
  CHECK(bench.json().at("program") ==
        "gradsync bench allreduce on sim, with faults: link, delay; imperfections: traffic, "
        "late_ranks");
}

TEST_CASE("a bench refuses the faults and imperfections that it cannot have") {
  for (const std::string backend : {"sim", "gloo"}) {
    for (const auto& [assignment, place] : std::vector<std::pair<std::string, std::string>>{
             {R"(imperfections.slow_ranks=[{"ranks":[1],"factor":2}])", "slow_ranks/0/factor"},
             {"imperfections.compute.spread=0.1", "compute/spread"},
             {"imperfections.compute.jitter=0.1", "compute/jitter"},
             {"imperfections.compute.while_communicating=1.2", "compute/while_communicating"},
             {R"(faults=[{"kind":"slow","factor":2}])", "/faults/0/kind"},
             {R"(faults=[{"kind":"slots"}])", "/faults/0/kind"},
             {R"(faults=[{"kind":"delay"},{"kind":"skip"}])", "/faults/1/kind"},
             {R"(faults=[{"kind":"kill","ranks":[1]}])", "/faults/0/kind"},
             {R"(faults=[{"kind":"delay","at":"epoch_end"}])", "/faults/0/at"}}) {
      CAPTURE(backend, assignment);
      const CommandResult bench = bench_with(backend, {assignment});
      CHECK(bench.exit_status == 2);
      CHECK(bench.out.empty());
      CHECK_THAT(bench.err, contains(place));
    }
  }
  // Cables are simulated ones.
  CHECK(bench_with("gloo", {R"(imperfections.links=[{"node":0,"factor":0.5}])"}).exit_status == 2);
  CHECK(bench_with("gloo", {R"(faults=[{"kind":"link","factor":0.5}])"}).exit_status == 2);
}

TEST_CASE("bench allreduce refuses what makes no sense") {
  CHECK(run_command({"bench"}).exit_status == 2);
  CHECK(run_command({"bench", "allreduce", "-b", "lots"}).exit_status == 2);
  CHECK(run_command({"bench", "allreduce", "-d", "float7"}).exit_status == 2);
  CHECK(run_command({"bench", "allreduce", "--backend", "sim", "-f", "1"}).exit_status == 2);
  CHECK(run_command({"bench", "allreduce", "--backend", "sim", "--cluster", "none.json"})
            .exit_status == 2);
}
