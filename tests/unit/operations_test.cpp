// The operations beside those of data parallelism: the test double that other tests use, what ranks
// compare, and a backend that does not have them.

#include "gradsync/comm/signature.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/operations_conformance.hpp"
#include "tests/support/thread_process_group.hpp"

using namespace gradsync;
using namespace gradsync::test;

namespace {

DeviceWorld threads(std::chrono::milliseconds timeout = std::chrono::seconds(20)) {
  return on_cpu([timeout](int size, const RankFunction& function) {
    ThreadWorld world(size, timeout);
    run_ranks(world, [&](RankContext& context) { function(context.group); });
  });
}

CollectiveRecord message(OpType op, int peer, std::int64_t elements) {
  CollectiveRecord record;
  record.op = op;
  record.root = peer;
  record.elements = elements;
  return record;
}

/// A process group of before: only what DDP needs.
class PlainGroup final : public ProcessGroup {
 public:
  explicit PlainGroup(Clock& clock)
      : ProcessGroup(0, 2, kDefaultGroupName, clock, std::make_shared<FlightRecorder>()) {}
  std::string backend_name() const override { return "plain"; }
  void shutdown() override {}

 protected:
  WorkPtr do_allreduce(Tensor, ReduceOp, const CollectiveRecord&) override { return {}; }
  WorkPtr do_broadcast(Tensor, int, const CollectiveRecord&) override { return {}; }
  WorkPtr do_allgather(Tensor, Tensor, const CollectiveRecord&) override { return {}; }
  WorkPtr do_barrier(const CollectiveRecord&) override { return {}; }
};

}  // namespace

TEST_CASE("the group of threads keeps the contract of the other operations") {
  check_operations_conformance(threads());
}

TEST_CASE("the group of threads finds operations that differ") {
  check_operation_mismatches(threads());
}

TEST_CASE("a send matches the recv of the same data, and nothing else") {
  const CollectiveRecord send = message(OpType::kSend, 1, 8), recv = message(OpType::kRecv, 0, 8);
  CHECK(signature(send) == "send to rank 1 of 8 float32 elements");
  CHECK(signature(recv) == "recv from rank 0 of 8 float32 elements");
  CHECK(same_signature(send, recv));
  CHECK(signatures_match(signature(send), signature(recv)));
  for (const CollectiveRecord& other :
       {message(OpType::kRecv, 0, 9), message(OpType::kAllreduce, -1, 8)}) {
    CHECK_FALSE(same_signature(send, other));
    CHECK_FALSE(signatures_match(signature(send), signature(other)));
  }
}

TEST_CASE("the name of a channel can be read back") {
  const auto channel = parse_channel(channel_name("stages: even", 3, 12));
  REQUIRE(channel);
  CHECK(channel->group == "stages: even");
  CHECK(channel->from == 3);
  CHECK(channel->to == 12);
  for (const char* name : {"default_pg", "a:b", "a:1->", "a:->2", "a:1->2x", "1->2"}) {
    CAPTURE(name);
    CHECK_FALSE(parse_channel(name));
  }
}

TEST_CASE("a backend without an operation says so, and its record ends") {
  FakeClock clock;
  PlainGroup group(clock);
  const auto refused = [&](const char* text, const auto& call) {
    try {
      call();
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::kUsage);
      CHECK_THAT(error.what(), contains(text));
      CHECK(group.flight_recorder().snapshot().back().state == CollectiveState::kFailed);
      return;
    }
    FAIL("not refused");
  };
  Tensor one = Tensor::zeros({1}, DType::kFloat32, cpu_device());
  Tensor two = Tensor::zeros({2}, DType::kFloat32, cpu_device());
  refused("plain has no reduce", [&] { group.reduce(one, 0, ReduceOp::kSum, {}); });
  refused("plain has no reduce_scatter",
          [&] { group.reduce_scatter(one, two, ReduceOp::kSum, {}); });
  refused("plain has no alltoall",
          [&] { group.alltoall(Tensor::zeros({2}, DType::kFloat32, cpu_device()), two, {}); });
  refused("plain has no send", [&] { group.send(one, 1, {}); });
  refused("plain has no recv", [&] { group.recv(one, 1, {}); });
}
