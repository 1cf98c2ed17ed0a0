// Imperfections through the command, each run in a process of its own: equal bytes for equal seeds,
// who is to blame on the terminal, and what really happens on Gloo.
#include <fstream>
#include <iterator>

#include "tests/cli/command.hpp"
#include "tests/cli/scenarios.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temporary_directory.hpp"

using namespace gradsync::test;

namespace {

namespace fs = std::filesystem;

std::string contents(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  REQUIRE(stream);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

std::vector<std::string> set_all(const std::vector<std::string>& assignments) {
  std::vector<std::string> options;
  for (const std::string& assignment : assignments) {
    options.insert(options.end(), {"--set", assignment});
  }
  return options;
}

}  // namespace

TEST_CASE("imperfections: equal seeds give equal bytes, other seeds others, sigma 0 none") {
  const TemporaryDirectory directory;
  int runs = 0;
  const auto steps = [&](const std::vector<std::string>& imperfections) {
    const fs::path out = directory.path() / std::to_string(runs++);
    std::vector<std::string> options = set_all(imperfections);
    options.insert(options.end(), {"--backend", "sim", "--out", out.string(), "--json"});
    const CommandResult run =
        run_command(run_arguments(shipped("determinism-replay.json"), options, {}));
    INFO(run.err);
    REQUIRE(run.exit_status == 0);
    return contents(out / "steps.jsonl");
  };
  const std::string jitter = "imperfections.compute.jitter=0.1";
  const std::string seven = steps({jitter, "imperfections.seed=7"});
  const std::string plain = steps({});
  CHECK(seven == steps({jitter, "imperfections.seed=7"}));
  CHECK(seven != steps({jitter, "imperfections.seed=8"}));
  CHECK(seven != plain);
  CHECK(plain == steps({"imperfections.compute.jitter=0", "imperfections.compute.spread=0",
                        "imperfections.seed=7"}));
  CHECK(plain == steps({"imperfections.compute.while_communicating=1"}));
}

TEST_CASE("imperfections: run names the rank, the link and the cost") {
  const TemporaryDirectory directory;
  const CommandResult run = run_command(
      run_arguments(shipped("predict/imperfect-cluster.json"), set_all({"train.max_steps=12"}), {}),
      {directory.path(), {}});
  INFO(run.out << run.err);
  REQUIRE(run.exit_status == 0);
  CHECK_THAT(run.out, contains("steady steps"));
  CHECK_THAT(run.out, contains("late ranks"));
  CHECK_THAT(run.out, contains("rank 11"));
  CHECK_THAT(run.out, contains("busiest link"));
  CHECK_THAT(run.out, contains("nic-2-0"));
}

TEST_CASE("imperfections: a link that is not there ends with status 2, file and pointer") {
  const TemporaryDirectory directory;
  const std::string file = shipped("predict/imperfect-cluster.json");
  const CommandResult run = run_command(
      run_arguments(file, set_all({R"(imperfections.links=[{"link": "nik-2-0"}])"}), {}),
      {directory.path(), {}});
  CHECK(run.exit_status == 2);
  CHECK_THAT(run.err, contains(file));
  CHECK_THAT(run.err, contains("/imperfections/links/0/link"));
  CHECK_THAT(run.err, contains("did you mean"));
}

TEST_CASE("imperfections: on Gloo a slow rank really computes longer, and a loader really stalls") {
  const TemporaryDirectory directory;
  const CommandResult run = run_command(run_arguments(
      shipped("determinism-replay.json"),
      set_all({R"(imperfections.slow_ranks=[{"ranks": [1], "factor": 3}])",
               R"(imperfections.loader_stalls=[{"ranks": [0], "every": 2, "duration": "20ms"}])"}),
      {"--backend", "gloo", "--out", (directory.path() / "gloo").string(), "--json"}));
  INFO(run.err);
  REQUIRE(run.exit_status == 0);
  std::ifstream lines(directory.path() / "gloo/steps.jsonl");
  int stalls = 0;
  for (std::string line; std::getline(lines, line);) {
    const auto step = nlohmann::json::parse(line);
    const auto seconds = [&](const char* from, const char* to) {
      return step.at(to).get<double>() - step.at(from).get<double>();
    };
    // Time that is slept is a lower bound, whatever else the machine does.
    if (step.at("rank") == 1) CHECK(seconds("data_end", "forward_end") >= 3 * 1e-3);
    if (step.at("rank") == 0 && step.at("step").get<int>() % 2 == 1) {
      CHECK(seconds("begin", "data_end") >= 0.02);
      ++stalls;
    }
  }
  CHECK(stalls > 0);
}

TEST_CASE("imperfections: check passes over those of a network that is not simulated") {
  const TemporaryDirectory directory;
  const CommandResult check =
      run_command({"check", shipped("hangs/k16-link-flaps.json"), "--backend", "gloo", "--out",
                   directory.path().string()});
  INFO(check.out << check.err);
  CHECK(check.exit_status == 0);
  CHECK_THAT(check.out, contains("0 invalid") && contains("1 impossible on this backend"));
}
