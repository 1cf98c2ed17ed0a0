#include <atomic>

#include "gradsync/comm/comm_error.hpp"
#include "tests/fake_cuda/cuda_job.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/process_group_conformance.hpp"

using namespace gradsync;
using namespace gradsync::test;

namespace {

std::size_t to_size(std::int64_t value) {
  return static_cast<std::size_t>(value);
}

Tensor tensor_of(CudaRank& rank, const std::vector<std::byte>& bytes, DType dtype) {
  const auto elements = static_cast<std::int64_t>(bytes.size() / element_size(dtype));
  Tensor tensor = Tensor::empty({elements}, dtype, *rank.device);
  rank.device->copy_from_host(tensor, bytes);
  return tensor;
}

std::vector<std::byte> bytes_of(const Tensor& tensor) {
  std::vector<std::byte> bytes(to_size(tensor.nbytes()));
  tensor.device().copy_to_host(bytes, tensor);
  return bytes;
}

}  // namespace

TEST_CASE("nccl: an all-reduce has the bits of NCCL's ring in every type, operation and size") {
  const auto dtype = GENERATE(DType::kFloat32, DType::kFloat16, DType::kBFloat16, DType::kInt64);
  const auto op = GENERATE(ReduceOp::kSum, ReduceOp::kMax, ReduceOp::kMin, ReduceOp::kAverage);
  if (op == ReduceOp::kAverage && !is_floating_point(dtype)) return;  // refused
  const int size = GENERATE(1, 2, 3);
  CudaJob job(size);
  for (const std::int64_t elements : {1, 5, 1000}) {
    std::vector<std::vector<std::byte>> inputs(to_size(size)), outputs(to_size(size));
    std::vector<const std::byte*> pointers;
    for (int r = 0; r < size; ++r) {
      inputs[to_size(r)] = test_values(dtype, elements, r);
      pointers.push_back(inputs[to_size(r)].data());
    }
    job.job_id = "elements " + std::to_string(elements);
    job.run([&](CudaRank& rank) {
      const auto r = to_size(rank.group->rank());
      Tensor tensor = tensor_of(rank, inputs[r], dtype);
      rank.group->allreduce(tensor, op, labelled(0))->wait();
      outputs[r] = bytes_of(tensor);
    });
    const NcclReduceOp nccl_op = op == ReduceOp::kSum   ? NcclReduceOp::kSum
                                 : op == ReduceOp::kMax ? NcclReduceOp::kMax
                                 : op == ReduceOp::kMin ? NcclReduceOp::kMin
                                                        : NcclReduceOp::kAverage;
    const auto expected = nccl_ring_allreduce(pointers, to_size(elements), dtype, nccl_op);
    for (const auto& output : outputs) CHECK((output == expected));
  }
}

TEST_CASE("nccl: broadcast, allgather and barrier") {
  constexpr int kSize = 3;
  CudaJob job(kSize);
  std::atomic<int> arrived = 0;
  std::vector<std::vector<float>> broadcasts(kSize), gathered(kSize);
  std::vector<int> seen(kSize);
  job.run([&](CudaRank& rank) {
    const int r = rank.group->rank();
    const auto mine = static_cast<float>(r);
    Tensor sent = on_device<float>(rank, {mine, mine + 10});
    rank.group->broadcast(sent, 2, labelled(0))->wait();
    broadcasts[to_size(r)] = values_of<float>(sent);

    Tensor input = on_device<float>(rank, {mine, 2 * mine});
    Tensor output = Tensor::zeros({kSize, 2}, DType::kFloat32, *rank.device);
    rank.group->allgather(output, input, labelled(1))->wait();
    gathered[to_size(r)] = values_of<float>(output);

    ++arrived;
    rank.group->barrier(labelled(2))->wait();
    seen[to_size(r)] = arrived;
  });
  for (int r = 0; r < kSize; ++r) {
    CHECK(broadcasts[to_size(r)] == std::vector<float>{2, 12});
    CHECK(gathered[to_size(r)] == std::vector<float>{0, 0, 1, 2, 2, 4});
    CHECK(seen[to_size(r)] == kSize);
  }
}

TEST_CASE("nccl: many works under way, waited for in any order, memory freed meanwhile") {
  constexpr int kSize = 2, kWorks = 30;
  CudaJob job(kSize);
  std::vector<std::vector<std::vector<float>>> results(kSize);
  job.run([&](CudaRank& rank) {
    std::vector<Tensor> tensors;
    std::vector<WorkPtr> works;
    for (int i = 0; i < kWorks; ++i) {
      tensors.push_back(on_device<float>(rank, std::vector<float>(50, static_cast<float>(i))));
      works.push_back(rank.group->allreduce(tensors.back(), ReduceOp::kSum, labelled(i)));
      // Nobody waits for this one, and only the work holds its tensor.
      rank.group->allreduce(on_device<float>(rank, {1, 2, 3}), ReduceOp::kSum, labelled(i, "lost"));
    }
    for (int i = kWorks; i-- > 0;) {
      works[to_size(i)]->wait();
      works[to_size(i)]->wait();
    }
    for (const Tensor& tensor : tensors) {
      results[to_size(rank.group->rank())].push_back(values_of<float>(tensor));
    }
  });
  for (const auto& of_rank : results) {
    for (int i = 0; i < kWorks; ++i) {
      CHECK(of_rank[to_size(i)] == std::vector<float>(50, static_cast<float>(2 * i)));
    }
  }
}

TEST_CASE("nccl: flight records have start and end from events, in order") {
  CudaJob job(2);
  std::vector<CollectiveRecord> records;
  job.run([&](CudaRank& rank) {
    Tensor tensor = on_device<float>(rank, {1, 2});
    for (int i = 0; i < 3; ++i) {
      rank.group->allreduce(tensor, ReduceOp::kSum, labelled(i, "gradients"))->wait();
    }
    rank.group->shutdown();  // the watchdog has seen all of them then
    if (rank.group->rank() == 0) records = rank.group->flight_recorder().snapshot();
  });
  REQUIRE(records.size() == 3);
  Seconds last{0};
  for (const CollectiveRecord& record : records) {
    CHECK(record.state == CollectiveState::kCompleted);
    CHECK(record.issued <= record.started);
    CHECK(record.started <= record.completed);
    CHECK(last <= record.started);
    last = record.completed;
  }
}

TEST_CASE("nccl: a call that NCCL takes late is waited for") {
  CudaJob job(2);
  for (int r = 0; r < 2; ++r) job.rank(r).nccl.faults.calls_stay_in_progress = 20;
  std::vector<float> result;
  job.run([&](CudaRank& rank) {
    Tensor tensor = on_device<float>(rank, {1, 2});
    rank.group->allreduce(tensor, ReduceOp::kSum, labelled(0))->wait();
    if (rank.group->rank() == 0) result = values_of<float>(tensor);
  });
  CHECK(result == std::vector<float>{2, 4});
}

TEST_CASE("nccl: buffers are registered once each, and given back") {
  CudaJob job(1);
  job.options.register_buffers = true;
  job.run([&](CudaRank& rank) {
    Tensor large = Tensor::zeros({1 << 19}, DType::kFloat32, *rank.device);
    Tensor small = on_device<float>(rank, {1, 2});
    for (int i = 0; i < 3; ++i) {
      rank.group->allreduce(large, ReduceOp::kSum, labelled(i))->wait();
      rank.group->allreduce(small, ReduceOp::kSum, labelled(i))->wait();
    }
    if (rank.nccl.registered() != 1) throw Error(ErrorCode::kInternal, "not registered once");
  });
  CHECK(job.rank(0).nccl.registered() == 0);
  CHECK(job.rank(0).nccl.destroyed() == 1);
  CHECK(job.rank(0).nccl.aborts() == 0);
}

TEST_CASE("nccl: a tensor of another device is refused") {
  CudaJob job(1);
  REQUIRE_THROWS_WITH(job.run([&](CudaRank& rank) {
    rank.group->allreduce(Tensor::zeros({3}, DType::kFloat32, cpu_device()), ReduceOp::kSum,
                          labelled(0));
  }),
                      contains("cuda:0") && contains("cpu"));
}
