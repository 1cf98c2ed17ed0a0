// Jobs that do not complete: the same hang on both backends, and a rank that dies.
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "tests/cli/command.hpp"
#include "tests/cli/scenarios.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temporary_directory.hpp"

using namespace gradsync::test;
namespace fs = std::filesystem;

TEST_CASE("uneven shards hang on both backends, with the same diagnosis") {
  const TemporaryDirectory directory;
  const auto run = [&](const std::string& backend) {
    const CommandResult result =
        run_command({"run", shipped("uneven-shards.json"), "--backend", backend, "--timeout", "3s",
                     "--out", directory.path() / backend, "--json"});
    INFO(result.err);
    CHECK(result.exit_status == 4);
    return result.json();
  };
  const auto sim = run("sim");
  const auto gloo = run("gloo");
  CHECK(sim.at("outcome") == "hang");
  CHECK(gloo.at("outcome") == "hang");
  const auto& simulated = sim.at("diagnosis");
  const auto& real = gloo.at("diagnosis");
  CHECK(simulated.at("kind") == "uneven_shards");
  CHECK(simulated.at("ranks") == nlohmann::ordered_json({2, 3}));
  CHECK(simulated.at("step") == 2);
  for (const std::string key : {"verdict", "kind", "ranks", "step", "bucket", "collective"}) {
    INFO(key);
    CHECK(simulated.at(key) == real.at(key));
  }

  // The evidence on disk leads to the same verdict, from the folder and from some of its files.
  for (const std::string backend : {"sim", "gloo"}) {
    const fs::path out = directory.path() / backend;
    const CommandResult diagnosed = run_command({"diagnose", out, "--json"});
    CHECK(diagnosed.exit_status == 0);
    CHECK(diagnosed.json().at("kind") == "uneven_shards");
    CHECK(diagnosed.json().at("ranks") == simulated.at("ranks"));
    const CommandResult text = run_command({"diagnose", out});
    CHECK_THAT(text.out, contains("drop_last"));
  }
}

TEST_CASE("the diagnosis is printed where a person reads it") {
  const TemporaryDirectory directory;
  const CommandResult result = run_command({"run", shipped("uneven-shards.json"), "--backend",
                                            "sim", "--out", directory.path() / "out"});
  CHECK(result.exit_status == 4);
  CHECK_THAT(result.out, contains("hang: "));
  CHECK_THAT(result.out, contains("drop_last"));
}

TEST_CASE("kill -9 of a rank ends the run with status 6, names the rank, and leaves nothing") {
  const TemporaryDirectory directory;
  // Neither the collectives' timeout (10 minutes) nor the end of the training (a million epochs)
  // can end this run within the test's time: only the death can.
  Command command(run_arguments(
      shipped("quickstart.json"), small_model(),
      {"--backend", "gloo", "--ranks", "4", "--timeout", "10min", "--set", "train.epochs=1000000",
       "--set", "train.hash_every=0", "--out", directory.path() / "out"}));
  REQUIRE(command.wait_for_output("\n       3 "));  // it trains
  const auto victims = command.processes_with("RANK", "2");
  REQUIRE(victims.size() == 1);
  REQUIRE(::kill(victims.front(), SIGKILL) == 0);

  const CommandResult result = command.wait();
  CHECK(result.exit_status == 6);
  CHECK_THAT(result.out, contains("failed: "));
  CHECK_THAT(result.out + result.err, contains("signal 9"));
  for (const std::string rank : {"0", "1", "3"}) {  // each of the others says who died
    CHECK_THAT(result.err, contains("[" + rank + "]: rank " + rank));
  }
  CHECK_THAT(result.err, contains("rank 2 died"));
  CHECK(command.survivors().empty());

  const CommandResult diagnosed = run_command({"diagnose", directory.path() / "out", "--json"});
  CHECK(diagnosed.json().at("kind") == "rank_died");
  CHECK(diagnosed.json().at("ranks") == nlohmann::ordered_json({2}));
}

TEST_CASE("a job that runs is looked into through its store, and a rank's dump comes by SIGUSR1") {
  const TemporaryDirectory directory;
  Command command(run_arguments(
      shipped("quickstart.json"), small_model(),
      {"--backend", "gloo", "--ranks", "3", "--timeout", "10min", "--set", "train.epochs=1000000",
       "--set", "train.hash_every=0", "--out", directory.path() / "out"}));
  REQUIRE(command.wait_for_output("\n       3 "));

  const CommandResult running = run_command({"diagnose", "--live", directory.path() / "out"});
  INFO(running.err);
  CHECK(running.exit_status == 0);
  CHECK_THAT(running.out, contains("running: 3 of 3 ranks advanced"));

  // A rank that is stopped holds the others up: they still answer, and say who is missing.
  const auto stopped = command.processes_with("RANK", "1");
  REQUIRE(stopped.size() == 1);
  REQUIRE(::kill(stopped.front(), SIGSTOP) == 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  const CommandResult stuck =
      run_command({"diagnose", "--live", directory.path() / "out", "--json"});
  INFO(stuck.out << stuck.err);
  CHECK(stuck.exit_status == 0);
  CHECK(stuck.json().at("ranks") == nlohmann::ordered_json({1}));
  REQUIRE(::kill(stopped.front(), SIGCONT) == 0);

  const auto asked = command.processes_with("RANK", "2");
  REQUIRE(asked.size() == 1);
  REQUIRE(::kill(asked.front(), SIGUSR1) == 0);
  const auto dump = directory.path() / "out" / "ranks" / "rank-2.dump.json";
  for (int i = 0; i < 600 && !std::filesystem::exists(dump); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  CHECK(std::filesystem::exists(dump));
  CHECK(::kill(command.pid(), SIGTERM) == 0);
  command.wait();
  CHECK(command.survivors().empty());
}

TEST_CASE("a signal to the command ends all ranks, and the run has failed by it") {
  const int signal = GENERATE(SIGTERM, SIGINT);
  const TemporaryDirectory directory;
  Command command(run_arguments(shipped("quickstart.json"), small_model(),
                                {"--backend", "gloo", "--ranks", "3", "--set",
                                 "train.epochs=1000000", "--out", directory.path() / "out"}));
  REQUIRE(command.wait_for_output("\n       3 "));
  REQUIRE(::kill(command.pid(), signal) == 0);
  const CommandResult result = command.wait();
  CHECK(result.exit_status == 6);
  CHECK_THAT(result.out, contains("failed: ") && contains("signal " + std::to_string(signal)));
  CHECK(command.survivors().empty());
}

TEST_CASE("ranks do not outlive a command that is killed") {
  const TemporaryDirectory directory;
  Command command(run_arguments(shipped("quickstart.json"), small_model(),
                                {"--backend", "gloo", "--ranks", "3", "--set",
                                 "train.epochs=1000000", "--out", directory.path() / "out"}));
  REQUIRE(command.wait_for_output("\n       3 "));
  REQUIRE(::kill(command.pid(), SIGKILL) == 0);
  const CommandResult result = command.wait();
  CHECK(result.signal == SIGKILL);
  CHECK(command.wait_until_alone());
}

TEST_CASE("ranks whose clean-up blocks are ended from outside, and have left their reports") {
  // A rank stalls, the others' wait runs out, and then no process ends by itself: only what was
  // told to the store can tell the launcher.
  const TemporaryDirectory directory;
  Command command(run_arguments(
      shipped("quickstart.json"), small_model(),
      {"--backend", "gloo", "--ranks", "3", "--timeout", "1s", "--json", "--set",
       R"(faults=[{"kind": "stall", "ranks": [1], "step": 2}, {"kind": "stall", "at": "clean_up"}])",
       "--out", directory.path() / "out"}));
  const CommandResult result = command.wait();
  INFO(result.err);
  CHECK(result.exit_status == 4);
  CHECK(command.survivors().empty());
  const auto diagnosis = result.json().at("diagnosis");
  CHECK(diagnosis.at("kind") == "stalled_loader");
  CHECK(diagnosis.at("ranks") == nlohmann::ordered_json({1}));
  CHECK_THAT(diagnosis.at("consequences").dump(),
             contains("did not come back from their clean-up"));
  for (const char* rank : {"0", "1", "2"}) {
    const auto report =
        directory.path() / "out" / "ranks" / ("rank-" + std::string(rank) + ".json");
    CHECK(fs::exists(report));
  }
}

TEST_CASE("a death after which clean-ups block, and a wrong address, are found on real ranks") {
  const TemporaryDirectory directory;
  const std::string name = GENERATE("k06-clean-up-blocks", "k22-wrong-address");
  const CommandResult check = run_command({"check", shipped("hangs/" + name + ".json"), "--backend",
                                           "gloo", "--out", directory.path().string()});
  INFO(check.out << check.err);
  CHECK(check.exit_status == 0);
}
