// `gradsync check`: a folder of scenarios is a test suite.
#include <filesystem>
#include <fstream>

#include "tests/cli/command.hpp"
#include "tests/cli/scenarios.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temporary_directory.hpp"

using namespace gradsync::test;
namespace fs = std::filesystem;

namespace {

/// A scenario with a small model in `folder`, with this `expect`.
std::string write_scenario(const fs::path& folder, const std::string& name,
                           const nlohmann::ordered_json& expect) {
  nlohmann::ordered_json scenario = nlohmann::ordered_json::parse(R"({
    "backend": "sim", "ranks": 2,
    "model": {"kind": "transformer", "vocab_size": 64, "d_model": 16, "nhead": 2, "num_layers": 1,
              "dim_feedforward": 32},
    "data": {"kind": "synthetic_tokens", "samples": 32, "seq_len": 8, "vocab_size": 64},
    "train": {"batch_size": 8}
  })");
  scenario["name"] = name;
  scenario["expect"] = expect;
  const fs::path file = folder / (name + ".json");
  std::ofstream(file) << scenario.dump(2);
  return file;
}

}  // namespace

TEST_CASE("check holds scenarios against what they expect") {
  const TemporaryDirectory directory;
  const fs::path folder = directory.path() / "suite";
  fs::create_directory(folder);
  write_scenario(folder, "a-fine", {{"outcome", "completed"}, {"steps_completed", 2}});
  write_scenario(folder, "b-silent", nlohmann::ordered_json::object());
  const std::vector<std::string> arguments = {"check", folder, "--out", directory.path() / "runs"};

  CommandResult result = run_command(arguments);
  INFO(result.out << result.err);
  CHECK(result.exit_status == 0);
  CHECK_THAT(result.out, contains("2 scenarios: 2 as expected"));
  CHECK(fs::exists(directory.path() / "runs/a-fine-sim-2/result.json"));

  const std::string wrong = write_scenario(folder, "c-wrong", {{"steps_completed", 3}});
  result = run_command(arguments);
  CHECK(result.exit_status == 1);
  CHECK_THAT(result.out, contains("not met " + wrong));
  CHECK_THAT(result.out, contains("/expect/steps_completed: expected 3, found 2"));
  CHECK_THAT(result.out, contains("3 scenarios: 2 as expected, 1 not"));

  const fs::path broken = folder / "d-broken.json";
  std::ofstream(broken) << "{";
  result = run_command(arguments);
  CHECK(result.exit_status == 2);
  CHECK_THAT(result.out, contains("invalid " + broken.string()));
}

TEST_CASE("check repeats a run and wants the same parameters each time") {
  const TemporaryDirectory directory;
  for (const std::string backend : {"gloo", "sim"}) {
    INFO(backend);
    const std::string file = write_scenario(directory.path(), "thrice", {{"outcome", "completed"}});
    const fs::path runs = directory.path() / "runs";
    const CommandResult result = run_command(
        {"check", file, "--backend", backend, "--ranks", "3", "--repeat", "3", "--out", runs});
    INFO(result.out << result.err);
    CHECK(result.exit_status == 0);
    CHECK_THAT(result.out, contains("3 runs"));
    CHECK(fs::exists(runs / ("thrice-" + backend + "-3") / "result.json"));
    CHECK(fs::exists(runs / ("thrice-" + backend + "-3-2") / "result.json"));
    CHECK(fs::exists(runs / ("thrice-" + backend + "-3-3") / "result.json"));
  }
}

TEST_CASE("a hang that is expected is as it should be") {
  const TemporaryDirectory directory;
  const CommandResult result = run_command({"check", shipped("uneven-shards.json"), "--backend",
                                            "sim", "--out", directory.path() / "runs"});
  INFO(result.out << result.err);
  CHECK(result.exit_status == 0);
}

TEST_CASE("a scenario that cannot be run here is not passed over in silence") {
  if (run_command({"backends"}).out.find("nccl  yes") != std::string::npos) return;  // a GPU
  const TemporaryDirectory directory;
  const std::string file =
      write_scenario(directory.path(), "somewhere-else", nlohmann::ordered_json::object());
  const CommandResult result =
      run_command({"check", file, "--backend", "nccl", "--out", directory.path() / "runs"});
  CHECK(result.exit_status == 3);
  CHECK_THAT(result.out, contains("0 as expected"));
  CHECK_THAT(result.out, contains("\"nccl\" is not available"));
}

TEST_CASE("every shipped scenario goes as it expects") {
  const TemporaryDirectory directory;
  const CommandResult result =
      run_command({"check", shipped(""), "--out", directory.path() / "runs"});
  INFO(result.out << result.err);
  CHECK(result.exit_status == 0);
}

TEST_CASE("the golden hash of a replay is the same on the other backend") {
  const TemporaryDirectory directory;
  for (const char* name :
       {"determinism-replay.json", "determinism-replay-3.json", "determinism-replay-4.json"}) {
    const CommandResult result = run_command(
        {"check", shipped(name), "--backend", "sim", "--out", directory.path() / "runs"});
    INFO(result.out << result.err);
    CHECK(result.exit_status == 0);
  }
}
