// What `gradsync run` prints and writes.
#include <filesystem>
#include <fstream>

#include "tests/cli/command.hpp"
#include "tests/cli/scenarios.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temporary_directory.hpp"

using namespace gradsync::test;
namespace fs = std::filesystem;

namespace {

nlohmann::ordered_json read_json(const fs::path& file) {
  return nlohmann::ordered_json::parse(std::ifstream(file));
}

std::vector<std::string> keys_of(const nlohmann::ordered_json& object) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.push_back(key);
  return keys;
}

bool has_keys(const nlohmann::ordered_json& object, const std::vector<std::string>& keys) {
  for (const std::string& key : keys) {
    if (!object.contains(key)) {
      UNSCOPED_INFO("no key " << key);
      return false;
    }
  }
  return true;
}

const std::vector<std::string> kResultKeys = {
    "schema_version",  "scenario",          "backend",        "world_size",     "outcome",
    "steps_completed", "parameters",        "parameter_hash", "loss",           "step_seconds",
    "time_breakdown",  "simulated_seconds", "wall_seconds",   "peak_rss_bytes", "ddp",
    "diagnosis"};

}  // namespace

TEST_CASE("run --json prints result.json and nothing else, with every stable key") {
  const TemporaryDirectory directory;
  for (const std::string backend : {"gloo", "sim"}) {
    INFO(backend);
    const fs::path out = directory.path() / backend;
    const CommandResult run =
        run_command(run_arguments(shipped("quickstart.json"), small_model(),
                                  {"--backend", backend, "--ranks", "2", "--out", out, "--json",
                                   "--set", "train.max_steps=3"}));
    REQUIRE(run.exit_status == 0);
    CHECK(run.err.empty());
    const auto result = run.json();
    CHECK(has_keys(result, kResultKeys));
    CHECK(has_keys(result.at("parameters"), {"count", "tensors", "bytes"}));
    CHECK(has_keys(result.at("loss"), {"first", "last", "mean"}));
    CHECK(has_keys(result.at("step_seconds"), {"min", "p50", "p95", "max", "mean"}));
    CHECK(has_keys(result.at("time_breakdown"),
                   {"forward", "backward_compute", "backward_comm", "exposed_comm", "optimizer"}));
    CHECK(has_keys(result.at("ddp"), {"buckets", "rebuilt", "comm_hook"}));
    CHECK(has_keys(result.at("ddp").at("buckets").at(0),
                   {"index", "bytes", "elements", "parameters"}));
    CHECK(result.at("backend") == backend);
    CHECK(result.at("world_size") == 2);
    CHECK(result.at("outcome") == "completed");
    CHECK(result.at("steps_completed") == 3);
    CHECK(result.at("parameter_hash").get<std::string>().size() == 32);
    CHECK(result.at("diagnosis").is_null());
    CHECK(result.at("simulated_seconds").is_null() == (backend == "gloo"));
    CHECK(read_json(out / "result.json") == result);
  }
}

TEST_CASE("run --json of an invalid scenario prints a result whose outcome is invalid") {
  const TemporaryDirectory directory;
  const fs::path file = directory.path() / "broken.json";
  std::ofstream(file) << R"({"name": "broken", "ranks": 0})";
  const CommandResult run = run_command({"run", file, "--json"});
  CHECK(run.exit_status == 2);
  CHECK_THAT(run.err, contains("/ranks"));
  const auto result = run.json();
  CHECK(has_keys(result, kResultKeys));
  CHECK(result.at("outcome") == "invalid");
}

TEST_CASE("run prints steps and a summary, and says where the run directory is") {
  const TemporaryDirectory directory;
  for (const std::string backend : {"gloo", "sim"}) {
    INFO(backend);
    const std::vector<std::string> arguments =
        run_arguments(shipped("quickstart.json"), small_model(),
                      {"--backend", backend, "--ranks", "2", "--set", "train.max_steps=12"});
    const CommandResult run = run_command(arguments, {directory.path(), {}});
    REQUIRE(run.exit_status == 0);
    CHECK_THAT(run.out, contains("# "));
    CHECK_THAT(run.out, contains("\n       9 "));  // the tenth step
    CHECK_THAT(run.out, contains("\n      10 "));  // a tenth step
    CHECK(run.out.find("\n      11 ") == std::string::npos);
    CHECK_THAT(run.out, contains("parameter hash"));
    CHECK(run.out.find('\x1b') == std::string::npos);  // not a terminal: no colours

    const std::string name = "runs/quickstart-" + backend + "-2";
    CHECK_THAT(run.out, contains(name + "\n"));
    for (const std::string file : {"scenario.json", "result.json", "steps.jsonl", "trace.json",
                                   "flight/rank-0.json", "flight/rank-1.json"}) {
      INFO(file);
      CHECK(fs::exists(directory.path() / name / file));
    }
    // The same again does not touch the first run.
    const CommandResult again = run_command(arguments, {directory.path(), {}});
    CHECK_THAT(again.out, contains(name + "-2\n"));
  }
}

TEST_CASE("the scenario in the run directory runs again and gives the same hash") {
  const TemporaryDirectory directory;
  const fs::path first = directory.path() / "first";
  const CommandResult run =
      run_command(run_arguments(shipped("quickstart.json"), small_model(),
                                {"--backend", "sim", "--ranks", "3", "--out", first, "--json"}));
  REQUIRE(run.exit_status == 0);
  const CommandResult again =
      run_command({"run", first / "scenario.json", "--out", directory.path() / "again", "--json"});
  REQUIRE(again.exit_status == 0);
  CHECK(again.json().at("parameter_hash") == run.json().at("parameter_hash"));
  CHECK(again.json().at("simulated_seconds") == run.json().at("simulated_seconds"));
  CHECK(keys_of(again.json()) == keys_of(run.json()));
}

TEST_CASE("a folder that holds something else is not written to, and nothing is run") {
  const TemporaryDirectory directory;
  std::ofstream(directory.path() / "precious.txt") << "mine";
  const CommandResult run = run_command(
      {"run", shipped("quickstart.json"), "--backend", "sim", "--out", directory.path(), "--json"});
  CHECK(run.exit_status == 2);
  CHECK(run.out.empty());
  CHECK_THAT(run.err, contains(directory.path().string()));
  CHECK(std::distance(fs::directory_iterator(directory.path()), fs::directory_iterator()) == 1);
}
