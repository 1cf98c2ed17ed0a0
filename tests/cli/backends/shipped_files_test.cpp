// What ships with gradsync is found by its name from any folder.
#include <fstream>

#include "tests/cli/command.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temporary_directory.hpp"

using namespace gradsync::test;

TEST_CASE("scenarios, cluster descriptions and tables that ship are found by name") {
  const TemporaryDirectory elsewhere;
  CommandOptions here;
  here.directory = elsewhere.path();
  for (const std::string name : {"bert-large-1024", "bert-large-1024.json",
                                 "scenarios/bert-large-1024.json", "./bert-large-1024"}) {
    INFO(name);
    const CommandResult result =
        run_command({"run", name, "--ranks", "8", "--out", "run", "--json"}, here);
    CHECK(result.exit_status == 0);
  }
  CHECK_THAT(run_command({"check", "hangs/k01-uneven-shards", "--backend", "sim"}, here).out,
             contains("ok "));
  CHECK(run_command({"bench", "allreduce", "--backend", "sim", "--ranks", "8", "--cluster",
                     "clusters/dgx-a100", "-b", "1M", "-e", "1M"},
                    here)
            .exit_status == 0);
  CHECK_THAT(run_command({"validate"}, here).out, contains("DLPerf"));
}

TEST_CASE("a file of the user's own goes before one that ships") {
  const TemporaryDirectory elsewhere;
  std::ofstream(elsewhere.path() / "quickstart") << "mine, and no scenario";
  CommandOptions here;
  here.directory = elsewhere.path();
  const CommandResult result = run_command({"run", "quickstart"}, here);
  CHECK(result.exit_status == 2);
  CHECK_THAT(result.err, contains("quickstart"));
}

TEST_CASE("a name that nothing has is reported as it was typed") {
  for (const std::string name : {"quickstartt", "../no/such.json", "/no/such"}) {
    const CommandResult result = run_command({"run", name});
    CHECK(result.exit_status == 2);
    CHECK_THAT(result.err, contains("gradsync: " + name));
  }
}
