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

TEST_CASE("bench allreduce refuses what makes no sense") {
  CHECK(run_command({"bench"}).exit_status == 2);
  CHECK(run_command({"bench", "allreduce", "-b", "lots"}).exit_status == 2);
  CHECK(run_command({"bench", "allreduce", "-d", "float7"}).exit_status == 2);
  CHECK(run_command({"bench", "allreduce", "--backend", "sim", "-f", "1"}).exit_status == 2);
  CHECK(run_command({"bench", "allreduce", "--backend", "sim", "--cluster", "none.json"})
            .exit_status == 2);
}
