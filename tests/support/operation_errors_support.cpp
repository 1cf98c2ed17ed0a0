#include <string>
#include <vector>

#include <fmt/format.h>

#include "gradsync/comm/comm_error.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/operations_conformance.hpp"

namespace gradsync::test {
namespace {

std::size_t to_size(std::int64_t value) {
  return static_cast<std::size_t>(value);
}

CollectiveOptions labelled(std::int64_t step) {
  CollectiveOptions options;
  options.label.epoch = 0;
  options.label.step = step;
  options.label.phase = Phase::kUser;
  options.label.what = "test";
  return options;
}

/// Runs `usual` on all ranks but one; checks that those of `concerned` get a desync with both
/// texts.
void check_mismatch(const DeviceWorld& world, int size, int odd_rank, const std::string& usual_text,
                    const DeviceRankFunction& usual, const std::string& odd_text,
                    const DeviceRankFunction& odd) {
  INFO("world " << size << ", rank " << odd_rank << ": " << odd_text << " instead of "
                << usual_text);
  std::vector<std::string> errors(to_size(size), "no error");
  std::vector<ErrorCode> codes(to_size(size), ErrorCode::kInternal);
  const auto run = [&] {
    world(size, [&](ProcessGroup& group, Device& device) {
      const auto rank = to_size(group.rank());
      try {
        group.barrier(labelled(0))->wait();
        (group.rank() == odd_rank ? odd : usual)(group, device);
        group.barrier(labelled(2))->wait();  // a work may end before its mismatch is found
      } catch (const CommError& e) {
        errors[rank] = e.what();
        codes[rank] = e.code();
        throw;
      }
    });
  };
  CHECK_THROWS_AS(run(), CommError);
  for (std::size_t rank = 0; rank < errors.size(); ++rank) {
    CHECK(codes[rank] == ErrorCode::kDesync);
    CHECK_THAT(errors[rank], contains(usual_text));
    CHECK_THAT(errors[rank], contains(odd_text));
    CHECK_THAT(errors[rank], contains(fmt::format("rank {} issued", odd_rank)));
  }
}

DeviceRankFunction reduce_of(std::int64_t elements, DType dtype, ReduceOp op, int root) {
  return [=](ProcessGroup& group, Device& device) {
    group.reduce(Tensor::zeros({elements}, dtype, device), root, op, labelled(1))->wait();
  };
}

DeviceRankFunction reduce_scatter_of(std::int64_t part, DType dtype, ReduceOp op) {
  return [=](ProcessGroup& group, Device& device) {
    group
        .reduce_scatter(Tensor::zeros({part}, dtype, device),
                        Tensor::zeros({group.size(), part}, dtype, device), op, labelled(1))
        ->wait();
  };
}

DeviceRankFunction alltoall_of(std::int64_t part, DType dtype) {
  return [=](ProcessGroup& group, Device& device) {
    group
        .alltoall(Tensor::zeros({group.size(), part}, dtype, device),
                  Tensor::zeros({group.size(), part}, dtype, device), labelled(1))
        ->wait();
  };
}

DeviceRankFunction message_of(std::int64_t elements, DType dtype) {
  return [=](ProcessGroup& group, Device& device) {
    Tensor tensor = Tensor::zeros({elements}, dtype, device);
    if (group.rank() == 0) group.send(tensor, 1, labelled(1))->wait();
    if (group.rank() == 1) group.recv(tensor, 0, labelled(1))->wait();
  };
}

}  // namespace

void check_operation_mismatches(const DeviceWorld& world) {
  constexpr DType kFloat = DType::kFloat32, kInt = DType::kInt32, kLong = DType::kInt64;
  constexpr ReduceOp kSum = ReduceOp::kSum, kMax = ReduceOp::kMax;
  const std::string usual_reduce = "reduce (sum) (root 0) of 8 float32 elements";
  const auto reduce = reduce_of(8, kFloat, kSum, 0);
  check_mismatch(world, 3, 1, usual_reduce, reduce, "reduce (sum) (root 0) of 9 float32 elements",
                 reduce_of(9, kFloat, kSum, 0));
  check_mismatch(world, 2, 1, usual_reduce, reduce, "reduce (sum) (root 1) of 8 float32 elements",
                 reduce_of(8, kFloat, kSum, 1));
  check_mismatch(world, 4, 3, usual_reduce, reduce, "reduce (max) (root 0) of 8 float32 elements",
                 reduce_of(8, kFloat, kMax, 0));
  check_mismatch(world, 2, 0, usual_reduce, reduce, "reduce (sum) (root 0) of 8 int32 elements",
                 reduce_of(8, kInt, kSum, 0));
  check_mismatch(world, 2, 1, usual_reduce, reduce, "reduce_scatter (sum) of 8 float32 elements",
                 reduce_scatter_of(4, kFloat, kSum));
  const auto scatter = reduce_scatter_of(4, kFloat, kSum);
  check_mismatch(world, 3, 2, "reduce_scatter (sum) of 12 float32 elements", scatter,
                 "reduce_scatter (sum) of 15 float32 elements", reduce_scatter_of(5, kFloat, kSum));
  check_mismatch(world, 3, 0, "reduce_scatter (sum) of 12 float32 elements", scatter,
                 "reduce_scatter (max) of 12 float32 elements", reduce_scatter_of(4, kFloat, kMax));
  check_mismatch(world, 3, 1, "alltoall of float32 elements", alltoall_of(4, kFloat),
                 "alltoall of int64 elements", alltoall_of(4, kLong));
  check_mismatch(world, 2, 1, "with 4 f", alltoall_of(4, kFloat), "with 5 f",
                 alltoall_of(5, kFloat));
  check_mismatch(world, 2, 1, "send to rank 1 of 8 float32 elements", message_of(8, kFloat),
                 "recv from rank 0 of 7 float32 elements", message_of(7, kFloat));
  check_mismatch(world, 2, 0, "recv from rank 0 of 8 float32 elements", message_of(8, kFloat),
                 "send to rank 1 of 8 int64 elements", message_of(8, kLong));
}

void check_operation_timeouts(const DeviceWorld& world) {
  const std::vector<std::pair<std::string, DeviceRankFunction>> cases = {
      {"reduce", reduce_of(8, DType::kFloat32, ReduceOp::kSum, 0)},
      {"reduce_scatter", reduce_scatter_of(8, DType::kFloat32, ReduceOp::kSum)},
      {"alltoall", alltoall_of(8, DType::kFloat32)},
      {"send", message_of(8, DType::kFloat32)},
  };
  for (const auto& [name, call] : cases) {
    INFO(name << " that rank 1 does not issue");
    std::string error = "no error";
    const auto run = [&, &call = call] {
      world(2, [&](ProcessGroup& group, Device& device) {
        if (group.rank() == 1) return group.stall();
        try {
          call(group, device);
          // On NCCL the wait orders streams; the read waits for the data.
          group.barrier(labelled(2))->wait();
        } catch (const CommError& e) {
          error = e.what();
          throw;
        }
      });
    };
    CHECK_THROWS_AS(run(), CommError);
    CHECK_THAT(error, contains("rank 0: "));
    CHECK_THAT(error, contains(name + " #0"));
    CHECK_THAT(error, contains("timed out"));
  }
}

}  // namespace gradsync::test
