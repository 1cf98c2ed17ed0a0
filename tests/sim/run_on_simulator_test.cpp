// A program's own function on simulated ranks.
#include "gradsync/simulator/run_on_simulator.hpp"

#include <vector>

#include "gradsync/comm/comm_error.hpp"
#include "gradsync/tensor/tensor.hpp"
#include "tests/support/catch.hpp"

using namespace gradsync;
using gradsync::test::contains;

namespace {

ErrorCode code_of(const std::function<void()>& run, const std::string& text) {
  try {
    run();
  } catch (const Error& error) {
    CHECK_THAT(error.what(), contains(text));
    return error.code();
  }
  FAIL("no error");
  return ErrorCode::kInternal;
}

}  // namespace

TEST_CASE("run_on_simulator gives every rank a group with data, and returns the simulated time") {
  std::vector<float> sums;
  const auto body = [&](ProcessGroup& group, Clock& clock) {
    const Tensor tensor = Tensor::from<float>({static_cast<float>(group.rank() + 1)}, {1});
    group.allreduce(tensor, ReduceOp::kSum, {})->wait();
    clock.advance(Seconds{0.25});
    sums.push_back(tensor.span<float>()[0]);
  };
  const Seconds time = run_on_simulator(3, body);
  CHECK(sums == std::vector<float>{6, 6, 6});
  CHECK(time > Seconds{0.25});
  CHECK(time < Seconds{0.26});

  ClusterSpec slow;
  slow.inter_node.latency = slow.intra_node.latency = Seconds{0.1};
  CHECK(run_on_simulator(3, body, slow) > time);
}

TEST_CASE("run_on_simulator throws the error of the rank that failed first") {
  const auto run = [] {
    run_on_simulator(3, [](ProcessGroup& group, Clock&) {
      if (group.rank() == 1) throw Error(ErrorCode::kMisuse, "rank 1 has no data");
      group.barrier({})->wait();
    });
  };
  CHECK(code_of(run, "rank 1 has no data") == ErrorCode::kMisuse);
}

TEST_CASE("run_on_simulator names a rank that waits for others that never come") {
  const auto run = [] {
    run_on_simulator(2, [](ProcessGroup& group, Clock&) {
      if (group.rank() == 0) group.barrier({})->wait();
    });
  };
  CHECK(code_of(run, "rank 0 did not finish: it waits for the other ranks in barrier") ==
        ErrorCode::kTimeout);
}
