#include "gradsync/comm/signature.hpp"

#include "tests/support/catch.hpp"

using namespace gradsync;

namespace {

CollectiveRecord gradient_bucket() {
  CollectiveRecord record;
  record.op = OpType::kAllreduce;
  record.elements = 1024;
  record.label = {.epoch = 0,
                  .step = 2,
                  .micro_step = 0,
                  .phase = Phase::kBackward,
                  .bucket = 1,
                  .what = "gradients",
                  .site = ""};
  return record;
}

}  // namespace

TEST_CASE("a collective's signature reads like its description") {
  CHECK(signature(gradient_bucket()) ==
        "allreduce (sum) of 1024 float32 elements, step 2 (epoch 0), bucket 1 (gradients)");
}

TEST_CASE("everything that must be equal on all ranks changes the signature") {
  const std::string reference = signature(gradient_bucket());
  const auto changed = [&](auto&& change) {
    CollectiveRecord record = gradient_bucket();
    change(record);
    CHECK(same_signature(record, gradient_bucket()) == (signature(record) == reference));
    return signature(record) != reference;
  };
  CHECK(changed([](auto& r) { r.elements = 1025; }));
  CHECK(changed([](auto& r) { r.dtype = DType::kFloat64; }));
  CHECK(changed([](auto& r) { r.op = OpType::kAllgather; }));
  CHECK(changed([](auto& r) { r.reduce_op = ReduceOp::kMax; }));
  CHECK(changed([](auto& r) { r.label.step = 3; }));
  CHECK(changed([](auto& r) { r.label.epoch = 1; }));
  CHECK(changed([](auto& r) { r.label.micro_step = 1; }));
  CHECK(changed([](auto& r) { r.label.bucket = 0; }));
  CHECK(changed([](auto& r) { r.label.what = "parameters"; }));
  CollectiveRecord broadcast = gradient_bucket();
  broadcast.op = OpType::kBroadcast;
  broadcast.root = 0;
  CollectiveRecord other_root = broadcast;
  other_root.root = 1;
  CHECK(signature(broadcast) != signature(other_root));
  CHECK(!same_signature(broadcast, other_root));
  CHECK(same_signature(broadcast, broadcast));
}

TEST_CASE("phase, call site and parameter names are not part of a signature") {
  CollectiveRecord record = gradient_bucket();
  record.label.phase = Phase::kJoin;
  record.label.site = "join.cpp:12";
  record.sequence = 7;
  CHECK(signature(record) == signature(gradient_bucket()));
  CHECK(same_signature(record, gradient_bucket()));
}

TEST_CASE("a mismatch names both ranks and both collectives") {
  const std::string text = describe_mismatch(5, 1, "allreduce of 4", 2, "barrier");
  CHECK_THAT(text, test::contains("#5"));
  CHECK_THAT(text, test::contains("rank 1 issued allreduce of 4"));
  CHECK_THAT(text, test::contains("rank 2 issued barrier"));
}
