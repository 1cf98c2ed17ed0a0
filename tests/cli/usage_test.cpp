// The command line itself: what is wrong with it is said on standard error, in one message, with
// exit status 2 (or 3 for a backend), and standard output stays empty.
#include "tests/cli/command.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/temporary_directory.hpp"

using namespace gradsync::test;

namespace {

const std::string kQuickstart = gradsync::test::source_dir() + "/scenarios/quickstart.json";

bool has_nccl() {
  return run_command({"backends"}).out.find("nccl  yes") != std::string::npos;
}

void check_refused(const std::vector<std::string>& arguments, int exit_status,
                   const std::string& message) {
  INFO(message);
  const TemporaryDirectory directory;
  const CommandResult result = run_command(arguments, {directory.path(), {}});
  CHECK(result.exit_status == exit_status);
  CHECK(result.out.empty());
  CHECK_THAT(result.err, contains(message));
  CHECK(std::filesystem::is_empty(directory.path()));  // nothing was started, nothing is written
}

}  // namespace

TEST_CASE("a wrong command line ends with status 2 and says what is wrong") {
  check_refused({}, 2, "Usage: gradsync");
  check_refused({"frobnicate"}, 2, "frobnicate");
  check_refused({"run"}, 2, "SCENARIO is required");
  check_refused({"run", kQuickstart, "--bogus"}, 2, "--bogus");
  check_refused({"run", kQuickstart, "--ranks", "two"}, 2, "--ranks");
  check_refused({"run", kQuickstart, "--ranks", "0"}, 2, "--ranks 0");
  check_refused({"run", kQuickstart, "--timeout", "10"}, 2, "--timeout 10");
  check_refused({"run", kQuickstart, "--set", "train.batch_size"}, 2, "PATH=VALUE");
  check_refused({"run", kQuickstart, "--set", "train.batchsize=4"}, 2, "batch_size");
  check_refused({"check"}, 2, "PATH is required");
  check_refused({"check", kQuickstart, "--repeat", "0"}, 2, "--repeat");
  check_refused({"compare", "one"}, 2, "B is required");
  check_refused({"compare", "nowhere", "nowhere-else"}, 2, "nowhere");
  check_refused({"diagnose", "nowhere"}, 2, "nowhere");
  check_refused({"launch"}, 2, "program");
  check_refused({"launch", "--nproc-per-node", "2", "--frob", "--", "true"}, 2, "--frob");
  check_refused({"launch", "--nproc-per-node", "0", "--", "true"}, 2, "nproc");
  check_refused({"launch", "--standalone", "--", "no-such-program-here"}, 2,
                "no-such-program-here");
}

TEST_CASE("a file that is not there ends with status 2 and is named") {
  check_refused({"run", "no/such/scenario.json"}, 2, "no/such/scenario.json");
}

TEST_CASE("a folder without scenarios is refused") {
  const TemporaryDirectory empty;
  const CommandResult result = run_command({"check", empty.path()});
  CHECK(result.exit_status == 2);
  CHECK_THAT(result.err, contains("holds no scenario"));
}

TEST_CASE("a backend that is unknown or not built in ends with status 3 and says why") {
  check_refused({"run", kQuickstart, "--backend", "mpi"}, 3, "there is no backend \"mpi\"");
  if (!has_nccl()) {  // most machines have no GPU
    check_refused({"run", kQuickstart, "--backend", "nccl"}, 3, "\"nccl\" is not available");
  }
#ifndef GRADSYNC_HAVE_GLOO
  check_refused({"run", kQuickstart, "--backend", "gloo"}, 3, "\"gloo\" is not available");
#endif
#ifndef GRADSYNC_HAVE_SIMGRID
  check_refused({"run", kQuickstart, "--backend", "sim"}, 3, "\"sim\" is not available");
#endif
}

TEST_CASE("help and version go to standard output with status 0") {
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{"--help"},
                                                    {"run", "--help"},
                                                    {"check", "--help"},
                                                    {"launch", "--help"},
                                                    {"compare", "--help"},
                                                    {"diagnose", "--help"}}) {
    const CommandResult result = run_command(arguments);
    CHECK(result.exit_status == 0);
    CHECK_THAT(result.out, contains("Usage:"));
    CHECK(result.err.empty());
  }
  CHECK_THAT(run_command({"--version"}).out, contains("gradsync 0."));
}

TEST_CASE("backends lists every backend with a reason for each that is missing") {
  const CommandResult result = run_command({"backends"});
  CHECK(result.exit_status == 0);
#ifdef GRADSYNC_HAVE_GLOO
  CHECK_THAT(result.out, contains("gloo  yes"));
#else
  CHECK_THAT(result.out, contains("gloo  no "));
#endif
#ifdef GRADSYNC_HAVE_SIMGRID
  CHECK_THAT(result.out, contains("sim   yes"));
#else
  CHECK_THAT(result.out, contains("sim   no "));
#endif
  CHECK_THAT(result.out, contains(has_nccl() ? "nccl  yes" : "nccl  no "));
}

TEST_CASE("schema prints the scenario's JSON Schema") {
  const CommandResult result = run_command({"schema"});
  CHECK(result.exit_status == 0);
  const auto schema = result.json();
  CHECK_THAT(schema.at("$schema").get<std::string>(), contains("draft-07"));
  CHECK(schema.at("properties").contains("train"));
}
