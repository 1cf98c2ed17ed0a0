// The operations beside those of data parallelism, on Gloo.

#include "tests/gloo/gloo_world.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/operations_conformance.hpp"

using namespace gradsync;
using namespace gradsync::test;

namespace {

DeviceWorld world(int threads, Seconds timeout = Seconds(60)) {
  GlooProcessGroup::Options options;
  options.timeout = timeout;
  options.threads = threads;
  return on_cpu(gloo_world(options));
}

}  // namespace

TEST_CASE("gloo: reduce, reduce_scatter, alltoall, send and recv keep the contract") {
  check_operations_conformance(world(1));
  check_operations_conformance(world(2));
}

TEST_CASE("gloo: operations that differ between ranks are desyncs") {
  check_operation_mismatches(world(1));
}

TEST_CASE("gloo: operations that a rank does not issue time out") {
  check_operation_timeouts(world(1, Seconds(0.5)));
}

TEST_CASE("gloo: two ranks may both send first and receive afterwards") {
  std::vector<float> got(2);
  world(1)(2, [&](ProcessGroup& group, Device& device) {
    Tensor mine = Tensor::from<float>({static_cast<float>(group.rank() + 1)}, {1});
    Tensor theirs = Tensor::zeros({1}, DType::kFloat32, device);
    const int peer = 1 - group.rank();
    const WorkPtr sent = group.send(mine, peer, {});
    group.recv(theirs, peer, {})->wait();
    sent->wait();
    got[static_cast<std::size_t>(group.rank())] = theirs.span<float>()[0];
  });
  CHECK(got == std::vector<float>{2, 1});
}
