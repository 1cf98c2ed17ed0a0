// The operations beside those of data parallelism, on NCCL's stand-in.

#include "tests/fake_cuda/cuda_job.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/operations_conformance.hpp"

using namespace gradsync;
using namespace gradsync::test;

namespace {

DeviceWorld world(Seconds timeout = Seconds(60)) {
  return [timeout](int size, const DeviceRankFunction& function) {
    CudaJob job(size);
    job.options.timeout = timeout;
    job.run([&](CudaRank& rank) { function(*rank.group, *rank.device); });
  };
}

}  // namespace

TEST_CASE("nccl: reduce, reduce_scatter, alltoall, send and recv keep the contract") {
  check_operations_conformance(world());
}

TEST_CASE("nccl: operations that differ between ranks are desyncs") {
  check_operation_mismatches(world());
}

TEST_CASE("nccl: operations that a rank does not issue time out") {
  check_operation_timeouts(world(Seconds(0.5)));
}

TEST_CASE("nccl: reduce and reduce_scatter average") {
  std::vector<std::vector<float>> averages(2), parts(2);
  world()(2, [&](ProcessGroup& group, Device& device) {
    const auto rank = static_cast<std::size_t>(group.rank());
    const float mine = group.rank() == 0 ? 2.0f : 4.0f;
    const auto upload = [&](const std::vector<float>& values) {
      const Tensor host = Tensor::from<float>(values, {static_cast<std::int64_t>(values.size())});
      Tensor tensor = Tensor::empty(host.shape(), host.dtype(), device);
      device.copy_from_host(tensor, {host.data(), static_cast<std::size_t>(host.nbytes())});
      return tensor;
    };
    Tensor tensor = upload({mine});
    group.reduce(tensor, 1, ReduceOp::kAverage, labelled(0))->wait();
    averages[rank] = values_of<float>(tensor);
    Tensor part = Tensor::zeros({1}, DType::kFloat32, device);
    group.reduce_scatter(part, upload({mine, 10 * mine}), ReduceOp::kAverage, labelled(1))->wait();
    parts[rank] = values_of<float>(part);
  });
  CHECK(averages[0] == std::vector<float>{2});
  CHECK(averages[1] == std::vector<float>{3});
  CHECK(parts[0] == std::vector<float>{3});
  CHECK(parts[1] == std::vector<float>{30});
}
