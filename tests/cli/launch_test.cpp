// `gradsync launch`: torchrun's options and environment around any program.
#include <signal.h>

#include "tests/cli/command.hpp"
#include "tests/support/catch.hpp"

using namespace gradsync::test;

TEST_CASE("launch gives each rank torchrun's environment and prefixes its output") {
  const CommandResult result = run_command(
      {"launch", "--nproc-per-node", "3", "--standalone", "--", "sh", "-c",
       "echo $RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE $MASTER_ADDR ${MASTER_PORT:+port}; "
       "echo warning of $RANK >&2"});
  CHECK(result.exit_status == 0);
  for (const std::string rank : {"0", "1", "2"}) {
    CHECK_THAT(result.out, contains("[" + rank + "]:" + rank + "/3 " + rank + "/3 127.0.0.1 port"));
    CHECK_THAT(result.err, contains("[" + rank + "]:warning of " + rank));
  }
}

TEST_CASE("launch takes both spellings of an option, and the program without dashes before it") {
  const std::vector<std::string> dashed = {
      "launch",        "--nproc-per-node=2",      "--nnodes=1",
      "--node-rank=0", "--master-addr=127.0.0.1", "--standalone"};
  const std::vector<std::string> underscored = {
      "launch", "--nproc_per_node", "2",         "--nnodes",    "1", "--node_rank",
      "0",      "--master_addr",    "127.0.0.1", "--standalone"};
  for (const auto& options : {dashed, underscored}) {
    for (const bool separated : {true, false}) {
      std::vector<std::string> arguments = options;
      if (separated) arguments.emplace_back("--");
      // The program's own options are not launch's, also where they look alike.
      for (const char* word : {"echo", "--nproc-per-node", "7"}) arguments.emplace_back(word);
      const CommandResult result = run_command(arguments);
      CHECK(result.exit_status == 0);
      CHECK_THAT(result.out, contains("[0]:--nproc-per-node 7"));
      CHECK_THAT(result.out, contains("[1]:--nproc-per-node 7"));
    }
  }
}

TEST_CASE("launch passes a second pair of dashes on to the program") {
  const CommandResult result = run_command({"launch", "--standalone", "--", "echo", "--", "x"});
  CHECK_THAT(result.out, contains("[0]:-- x"));
}

TEST_CASE("launch ends with the status of the rank that failed first, and ends the others") {
  // The others would sleep for longer than this test may take.
  const CommandResult result = run_command({"launch", "--nproc-per-node", "3", "--standalone", "--",
                                            "sh", "-c", "test $RANK = 1 && exit 7; sleep 1000"});
  CHECK(result.exit_status == 7);
  CHECK_THAT(result.err, contains("rank 1"));
  CHECK_THAT(result.err, contains("exit status 7"));
}

TEST_CASE("launch ends with 128 plus the signal that ended the first rank") {
  const CommandResult result =
      run_command({"launch", "--nproc-per-node", "2", "--standalone", "--", "sh", "-c",
                   "test $RANK = 0 && kill -9 $$; sleep 1000"});
  CHECK(result.exit_status == 128 + 9);
  CHECK_THAT(result.err, contains("rank 0"));
}

TEST_CASE("launch forwards a signal to its ranks") {
  Command command({"launch", "--nproc-per-node", "2", "--standalone", "--", "sh", "-c",
                   "trap 'echo got it; exit 0' TERM; echo ready; while true; do sleep 0.1; done"});
  REQUIRE(command.wait_for_output("[0]:ready"));
  REQUIRE(command.wait_for_output("[1]:ready"));
  REQUIRE(::kill(command.pid(), SIGTERM) == 0);
  const CommandResult result = command.wait();
  CHECK(result.exit_status == 128 + SIGTERM);
  CHECK_THAT(result.out, contains("[0]:got it"));
  CHECK_THAT(result.out, contains("[1]:got it"));
  CHECK(command.survivors().empty());
}

TEST_CASE("launch ends what a rank left behind in the background") {
  const CommandResult result = run_command(
      {"launch", "--nproc-per-node", "2", "--standalone", "--", "sh", "-c", "sleep 1000 & exit 0"});
  CHECK(result.exit_status == 0);  // run_command has looked for survivors
}
