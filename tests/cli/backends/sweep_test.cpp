// `gradsync sweep` and `gradsync tune`, simulated and on Gloo.
#include <filesystem>
#include <fstream>

#include "tests/cli/command.hpp"
#include "tests/cli/scenarios.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temporary_directory.hpp"

using namespace gradsync::test;
namespace fs = std::filesystem;

TEST_CASE("sweep runs every combination in sim, keeps the results and goes on where it was") {
  const TemporaryDirectory directory;
  const std::string out = directory.path() / "sweep";
  std::vector<std::string> arguments = {
      "sweep",  shipped("determinism-replay.json"), "--backend", "sim", "--over",   "/ranks=2,3",
      "--over", "ddp.bucket_cap_mb=0.1,1",          "--out",     out,   "--format", "json"};
  const CommandResult first = run_command(arguments);
  INFO(first.err);
  REQUIRE(first.exit_status == 0);
  CHECK(first.err.empty());
  const auto sweep = first.json();
  REQUIRE(sweep.at("rows").size() == 4);
  for (const auto& row : sweep.at("rows")) {
    CHECK(row.at("outcome") == "completed");
    const auto& split = row.at("split");
    const double sum = split.at("data").get<double>() + split.at("forward").get<double>() +
                       split.at("backward").get<double>() + split.at("exposed_comm").get<double>() +
                       split.at("optimizer").get<double>();
    CHECK(sum == Approx(row.at("step_seconds").at("p50").get<double>()).epsilon(0.05));
    CHECK(row.at("bottleneck").get<std::string>().find("rank-") == 0);
  }
  CHECK(sweep.at("rows")[2].at("world_size") == 3);
  CHECK(sweep.at("rows")[0].at("buckets") > sweep.at("rows")[1].at("buckets"));
  for (const char* file : {"table.txt", "table.csv", "table.md", "table.json", "plot.svg"}) {
    CHECK(fs::exists(fs::path(out) / file));
  }

  // Again with one value more: only that is run.
  arguments[5] = "/ranks=2,3,4";
  arguments.back() = "text";
  const CommandResult again = run_command(arguments);
  REQUIRE(again.exit_status == 0);
  CHECK_THAT(again.out, contains("6 runs, 4 of them done before"));
}

TEST_CASE("sweep on Gloo starts real ranks") {
  const TemporaryDirectory directory;
  const CommandResult sweep = run_command(
      {"sweep", shipped("determinism-replay.json"), "--backend", "gloo", "--ranks", "2", "--over",
       "/train/max_steps=2,3", "--out", directory.path() / "sweep", "--format", "json"});
  INFO(sweep.err);
  REQUIRE(sweep.exit_status == 0);
  CHECK(sweep.json().at("rows")[1].at("steps") == 2);
  CHECK(sweep.json().at("rows")[1].at("outcome") == "completed");
}

TEST_CASE("sweep names a wrong axis or value before anything runs") {
  const TemporaryDirectory directory;
  const std::string out = directory.path() / "sweep";
  const CommandResult axis = run_command(
      {"sweep", shipped("determinism-replay.json"), "--over", "/ddp/bucket_cap=1", "--out", out});
  CHECK(axis.exit_status == 2);
  CHECK_THAT(axis.err, contains("bucket_cap_mb"));
  const CommandResult value = run_command(
      {"sweep", shipped("determinism-replay.json"), "--over", "/ranks=2,none", "--out", out});
  CHECK(value.exit_status == 2);
  CHECK_THAT(value.err, contains("--over ranks=none"));
  CHECK_FALSE(fs::exists(out));
}

TEST_CASE("sweep shows a run that hangs as such, and ends with 1") {
  const TemporaryDirectory directory;
  const CommandResult sweep =
      run_command({"sweep", shipped("uneven-shards.json"), "--backend", "sim", "--set",
                   "model.d_model=32", "--set", "model.dim_feedforward=64", "--over", "/seed=0",
                   "--out", directory.path() / "sweep"});
  CHECK(sweep.exit_status == 1);
  CHECK_THAT(sweep.out, contains("hang"));
}

TEST_CASE("tune finds larger buckets where latency is what costs") {
  const TemporaryDirectory directory;
  const CommandResult tune =
      run_command({"tune", shipped("determinism-replay.json"), "--backend", "sim", "--set",
                   "ddp.bucket_cap_mb=0.1", "--set", "cluster.intra_node.latency=200us", "--out",
                   directory.path() / "tune", "--json"});
  INFO(tune.err);
  REQUIRE(tune.exit_status == 0);
  const auto answer = tune.json();
  CHECK(answer.at("now").at("bucket_cap_mb") == 0.1);
  CHECK(answer.at("best").at("step_seconds").at("p50") <
        answer.at("now").at("step_seconds").at("p50"));
  CHECK(answer.at("best").at("buckets") < answer.at("now").at("buckets"));
}

TEST_CASE("ablate says what each imperfection costs, and which fault a hang comes of") {
  const TemporaryDirectory directory;
  const CommandResult slow =
      run_command({"ablate", shipped("determinism-replay.json"), "--backend", "sim", "--set",
                   R"(imperfections={"slow_ranks": [{"ranks": [1], "factor": 2}],
                         "links": [{"link": "rank-1", "factor": 0.9}]})",
                   "--out", directory.path() / "slow", "--json"});
  INFO(slow.err);
  REQUIRE(slow.exit_status == 0);
  const auto rows = slow.json().at("rows");
  REQUIRE(rows.size() == 3);
  CHECK(rows[0].at("without") == "/imperfections/slow_ranks/0");
  CHECK(rows[1].at("without") == "/imperfections/links/0");
  CHECK(rows[0].at("cost") > rows[1].at("cost"));
  CHECK(rows[2].at("cost") >= rows[0].at("cost"));

  const CommandResult hang =
      run_command({"ablate", shipped("determinism-replay.json"), "--backend", "sim", "--set",
                   R"(faults=[{"kind": "delay", "ranks": [0], "step": 1, "duration": "1ms"},
                             {"kind": "stall", "ranks": [1], "step": 2}])",
                   "--out", directory.path() / "hang", "--json"});
  INFO(hang.err);
  REQUIRE(hang.exit_status == 0);
  CHECK(hang.json().at("as_is").at("outcome") == "hang");
  CHECK(hang.json().at("rows").at(0).at("outcome") == "hang");
  CHECK(hang.json().at("rows").at(1).at("outcome") == "completed");  // without the stall

  // A checkpoint lies between two steps, and in neither of them.
  const CommandResult between = run_command(
      {"ablate", shipped("determinism-replay.json"), "--backend", "sim", "--set",
       R"(faults=[{"kind": "delay", "step": 1, "steps": 9, "at": "step_end", "duration": "100ms"}])",
       "--out", directory.path() / "between", "--json"});
  INFO(between.err);
  REQUIRE(between.exit_status == 0);
  CHECK(between.json().at("rows").at(0).at("cost") > 0.5);

  const CommandResult nothing =
      run_command({"ablate", shipped("quickstart.json"), "--out", directory.path() / "none"});
  CHECK(nothing.exit_status == 2);
  CHECK_THAT(nothing.err, contains("neither imperfections nor faults"));
}

TEST_CASE("run --explain prints what simulated NCCL chose from, for each size of bucket") {
  const TemporaryDirectory directory;
  std::vector<std::string> arguments = {"run",
                                        shipped("determinism-replay.json"),
                                        "--backend",
                                        "sim",
                                        "--explain",
                                        "--set",
                                        "cluster.library=nccl",
                                        "--out",
                                        directory.path() / "run"};
  const CommandResult nccl = run_command(arguments);
  INFO(nccl.err);
  REQUIRE(nccl.exit_status == 0);
  CHECK_THAT(nccl.out, contains("ring"));
  CHECK_THAT(nccl.out, contains("simple"));
  arguments[6] = "cluster.library=gloo";
  const CommandResult gloo = run_command(arguments);
  REQUIRE(gloo.exit_status == 0);
  CHECK_THAT(gloo.out, contains("nothing to explain"));
}
