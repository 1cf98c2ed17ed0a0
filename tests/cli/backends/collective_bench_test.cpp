// `gradsync bench` of the operations beside the all-reduce.

#include <string>
#include <vector>

#include "tests/cli/command.hpp"
#include "tests/support/catch.hpp"

using gradsync::test::Approx;
using gradsync::test::CommandResult;
using gradsync::test::contains;
using gradsync::test::run_command;

namespace {

const std::vector<std::string> kOperations = {"broadcast",      "reduce",   "allgather",
                                              "reduce_scatter", "alltoall", "sendrecv"};

}  // namespace

TEST_CASE("bench measures every operation on Gloo and in sim, with exact results") {
  for (const std::string backend : {"gloo", "sim"}) {
    for (const std::string& operation : kOperations) {
      CAPTURE(backend, operation);
      const CommandResult bench =
          run_command({"bench", operation, "--backend", backend, "--ranks", "3", "-b", "8", "-e",
                       "4K", "-f", "8", "-n", "2", "-w", "1"});
      INFO(bench.err);
      REQUIRE(bench.exit_status == 0);
      CHECK_THAT(bench.out, contains("gradsync bench " + operation + " on " + backend));
      CHECK_THAT(bench.out, contains("out-of-place"));
      CHECK_THAT(bench.out, contains("Out of bounds values : 0 OK"));
    }
  }
}

TEST_CASE("bench has nccl-tests' sizes, counts and factors") {
  struct Expected {
    std::string operation;
    const char* way;
    std::int64_t bytes, count;  // of 4096 bytes on 3 ranks
    double factor;              // busbw / algbw
    std::string redop;
    int root;
  };
  const std::vector<Expected> table = {
      {"broadcast", "in_place", 4096, 1024, 1, "none", 0},
      {"reduce", "in_place", 4096, 1024, 1, "sum", 0},
      {"allgather", "out_of_place", 4092, 341, 2.0 / 3, "none", -1},
      {"reduce_scatter", "in_place", 4092, 341, 2.0 / 3, "sum", -1},
      {"alltoall", "out_of_place", 4092, 341, 2.0 / 3, "none", -1},
      {"sendrecv", "out_of_place", 4096, 1024, 1, "none", -1},
  };
  for (const Expected& e : table) {
    CAPTURE(e.operation);
    const CommandResult bench = run_command({"bench", e.operation, "--backend", "sim", "--ranks",
                                             "3", "-b", "4K", "-e", "4K", "--json"});
    REQUIRE(bench.exit_status == 0);
    const auto row = bench.json().at("results").at(0);
    CHECK(row.at("size") == e.bytes);
    CHECK(row.at("count") == e.count);
    CHECK(row.at("redop") == e.redop);
    CHECK(row.at("root") == e.root);
    const auto& way = row.at(e.way);
    CHECK(way.at("nwrong") == 0);
    CHECK(way.at("bus_bw").get<double>() / way.at("alg_bw").get<double>() == Approx(e.factor));
  }
}

TEST_CASE("bench refuses a root that is no rank, and sendrecv of one rank") {
  const CommandResult root = run_command({"bench", "reduce", "--ranks", "2", "--root", "2"});
  CHECK(root.exit_status == 2);
  CHECK_THAT(root.err, contains("the ranks are 0 to 1"));
  const CommandResult alone = run_command({"bench", "sendrecv", "--ranks", "1"});
  CHECK(alone.exit_status == 2);
  CHECK_THAT(alone.err, contains("two ranks or more"));
}
