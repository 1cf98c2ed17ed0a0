// The nccl backend as a person calls it, on the stand-in: ranks are processes, and all but CUDA and
// NCCL is the real thing (the kernels' source runs on the host).
#include <signal.h>

#include <cmath>
#include <filesystem>
#include <thread>

#include "gradsync/predict/bench_log.hpp"
#include "tests/cli/command.hpp"
#include "tests/cli/scenarios.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temporary_directory.hpp"

using namespace gradsync::test;
namespace fs = std::filesystem;

namespace {

const CommandOptions kStandIn = [] {
  CommandOptions options;
  options.program = GRADSYNC_ON_STAND_IN;
  return options;
}();

/// A transformer whose kernels the host gets through in time.
std::vector<std::string> tiny(const std::vector<std::string>& more) {
  return run_arguments(
      shipped("quickstart.json"),
      {"--set", "model.vocab_size=20", "--set", "model.d_model=8", "--set", "model.nhead=2",
       "--set", "model.num_layers=1", "--set", "model.dim_feedforward=8", "--set",
       "data.vocab_size=20", "--set", "data.seq_len=4", "--set", "data.samples=32", "--set",
       "train.batch_size=2"},
      more);
}

}  // namespace

TEST_CASE("nccl: a job of processes trains as on Gloo, and its result has times from events") {
  const TemporaryDirectory directory;
  const auto run = [&](const std::string& backend, const CommandOptions& options) {
    const CommandResult result = run_command(
        tiny({"--backend", backend, "--ranks", "2", "--json", "--out", directory.path() / backend}),
        options);
    INFO(result.err);
    REQUIRE(result.exit_status == 0);
    return result.json();
  };
  const auto nccl = run("nccl", kStandIn), gloo = run("gloo", {});
  CHECK(nccl.at("outcome") == "completed");
  CHECK(nccl.at("steps_completed") == gloo.at("steps_completed"));
  const double ours = nccl.at("loss").at("last").get<double>();
  CHECK(ours == Approx(gloo.at("loss").at("last").get<double>()).epsilon(1e-4));
  const auto& times = nccl.at("time_breakdown");
  for (const std::string part : {"forward", "backward_compute", "backward_comm", "optimizer"}) {
    INFO(part);
    CHECK(times.at(part).get<double>() > 0);
  }
  CHECK(times.at("exposed_comm").get<double>() >= 0);
}

TEST_CASE("nccl: bench measures the other operations, with exact results") {
  for (const std::string operation :
       {"broadcast", "reduce", "allgather", "reduce_scatter", "alltoall", "sendrecv"}) {
    CAPTURE(operation);
    const CommandResult bench = run_command(
        {"bench", operation, "--backend", "nccl", "--ranks", "3", "-b", "8", "-e", "4K", "-f", "8",
         "-n", "2", "-w", "1"},
        kStandIn);
    INFO(bench.err);
    REQUIRE(bench.exit_status == 0);
    CHECK_THAT(bench.out, contains("Out of bounds values : 0 OK"));
  }
}

TEST_CASE("nccl: bench allreduce and calibrate, from the ranks to a cluster that sim runs on") {
  const CommandResult bench =
      run_command({"bench", "allreduce", "--backend", "nccl", "--ranks", "2", "-b", "8", "-e", "4K",
                   "-f", "8", "-n", "2", "-w", "1"},
                  kStandIn);
  INFO(bench.err);
  REQUIRE(bench.exit_status == 0);
  CHECK_THAT(bench.out, contains("Out of bounds values : 0 OK"));
  const auto table = gradsync::read_bench_log(bench.out, "nccl");
  CHECK(table.ranks == 2);
  REQUIRE(table.rows.size() == 4);
  for (const auto& row : table.rows) CHECK(row.time.count() > 0);

  const TemporaryDirectory directory;
  const std::string cluster = directory.path() / "cluster.json";
  const CommandResult calibrated =
      run_command({"calibrate", "--backend", "nccl", "--ranks", "2", "-b", "64K", "-e", "4M", "-f",
                   "8", "-n", "2", "-w", "1", "--only-network", "--out", cluster},
                  kStandIn);
  INFO(calibrated.out << calibrated.err);
  // The stand-in's times are those of threads on a machine that others use: noise is no failure
  // here.
  REQUIRE((calibrated.exit_status == 0 || calibrated.err.find("WARNING") != std::string::npos));
  const CommandResult simulated =
      run_command({"bench", "allreduce", "--backend", "sim", "--ranks", "2", "--cluster", cluster,
                   "-b", "64K", "-e", "4M", "-f", "8"});
  INFO(simulated.err);
  CHECK(simulated.exit_status == 0);
  CHECK_THAT(simulated.out, contains("4194304"));
}

TEST_CASE(
    "nccl: a job that runs answers for itself, by the store and by SIGUSR1; kill -9 ends it") {
  const TemporaryDirectory directory;
  Command command(tiny({"--backend", "nccl", "--ranks", "2", "--timeout", "10min", "--set",
                        "train.epochs=1000000", "--set", "train.hash_every=0", "--out",
                        directory.path() / "out"}),
                  kStandIn);
  REQUIRE(command.wait_for_output("\n       3 "));
  const CommandResult running =
      run_command({"diagnose", "--live", directory.path() / "out"}, kStandIn);
  INFO(running.err);
  CHECK(running.exit_status == 0);
  CHECK_THAT(running.out, contains("of 2 ranks advanced") && contains("Nothing is stuck"));

  const auto asked = command.processes_with("RANK", "1");
  REQUIRE(asked.size() == 1);
  REQUIRE(::kill(asked.front(), SIGUSR1) == 0);
  const auto dump = directory.path() / "out" / "ranks" / "rank-1.dump.json";
  for (int i = 0; i < 600 && !fs::exists(dump); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  CHECK(fs::exists(dump));

  REQUIRE(::kill(asked.front(), SIGKILL) == 0);
  const CommandResult result = command.wait();
  CHECK(result.exit_status == 6);
  CHECK_THAT(result.out + result.err, contains("signal 9"));
  CHECK(command.survivors().empty());
}

TEST_CASE("nccl: jobs that go wrong end as they do elsewhere, with the same diagnosis") {
  // One that hangs, one that NCCL would let pass, a step left half-way (with its stamps), and a
  // rank that fails by itself behind a collective that its host does not wait for. The timeout has
  // to be long: with several ranks on a core a stand-in takes its time.
  const TemporaryDirectory directory;
  const fs::path folder = directory.path() / "lab";
  fs::create_directory(folder);
  for (const std::string name : {"k17-two-groups-opposite-order", "k23-payload-size",
                                 "k08-nan-skip-detail", "k06-handler-hides-the-first-error"}) {
    fs::copy_file(shipped("hangs/" + name + ".json"), folder / (name + ".json"));
  }
  const CommandResult result = run_command(
      {"check", folder, "--backend", "nccl", "--timeout", "8s", "--out", directory.path() / "runs"},
      kStandIn);
  INFO(result.out << result.err);
  CHECK(result.exit_status == 0);
  CHECK_THAT(result.out, contains("4 scenarios: 4 as expected"));
}
