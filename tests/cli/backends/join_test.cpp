// `gradsync run` under another launcher: each process joins as one rank, rank 0 collects and
// prints.
#include <filesystem>

#include "tests/cli/command.hpp"
#include "tests/cli/scenarios.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/temporary_directory.hpp"

using namespace gradsync::test;
namespace fs = std::filesystem;

namespace {

std::vector<std::string> launched(const std::vector<std::string>& arguments) {
  std::vector<std::string> words = {
      "launch", "--nproc-per-node", "3", "--standalone", "--", gradsync::test::command_path()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return words;
}

std::vector<std::string> quickstart(const std::vector<std::string>& more) {
  std::vector<std::string> arguments = {"--backend", "gloo", "--set", "train.max_steps=5"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_arguments(shipped("quickstart.json"), small_model(), arguments);
}

}  // namespace

TEST_CASE("three processes of a launcher become one run, which rank 0 reports") {
  const TemporaryDirectory directory;
  const fs::path joined = directory.path() / "joined";
  const CommandResult result = run_command(launched(quickstart({"--out", joined})));
  INFO(result.out << result.err);
  CHECK(result.exit_status == 0);
  CHECK_THAT(result.out, contains("[0]:completed: quickstart on gloo, 3 ranks, 5 steps"));
  CHECK(result.out.find("[1]:") == std::string::npos);
  CHECK(result.out.find("[2]:") == std::string::npos);

  // The world size came from the launcher; the run is the one that `run` starts itself.
  const fs::path started = directory.path() / "started";
  REQUIRE(run_command(quickstart({"--ranks", "3", "--out", started})).exit_status == 0);
  CHECK(run_command({"compare", joined, started}).exit_status == 0);
}

TEST_CASE("a number of ranks that contradicts the launcher is refused") {
  const TemporaryDirectory directory;
  const CommandResult result =
      run_command(launched(quickstart({"--ranks", "2", "--out", directory.path() / "out"})));
  CHECK(result.exit_status == 2);
  CHECK_THAT(result.err, contains("--ranks 2 contradicts the 3 ranks"));
}

TEST_CASE("a launcher's variable that is missing or wrong is named") {
  const TemporaryDirectory directory;
  const auto run_with = [&](const std::map<std::string, std::string>& env) {
    return run_command(quickstart({"--out", directory.path() / "out"}), {"", env});
  };
  const CommandResult no_world = run_with({{"RANK", "0"}});
  CHECK(no_world.exit_status == 2);
  CHECK_THAT(no_world.err, contains("WORLD_SIZE"));
  const CommandResult bad_rank = run_with({{"RANK", "x"}, {"WORLD_SIZE", "2"}});
  CHECK(bad_rank.exit_status == 2);
  CHECK_THAT(bad_rank.err, contains("RANK"));
}

TEST_CASE("ranks that do not come are named when the time is up") {
  const TemporaryDirectory directory;
  // Only rank 0 of three joins; the other two do something else.
  const CommandResult result = run_command(
      {"launch", "--nproc-per-node", "3", "--standalone", "--", "sh", "-c",
       "test $RANK = 0 || exec sleep 1000; exec \"$0\" run \"$1\" --backend gloo --timeout 1s "
       "--out \"$2\"",
       gradsync::test::command_path(), shipped("quickstart.json"), directory.path() / "out"});
  CHECK(result.exit_status == 4);
  CHECK_THAT(result.err, contains("missing: ranks 1-2"));
}
