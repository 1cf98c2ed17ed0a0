// On real GPUs; skipped, and counted as skipped, where there are none (docs/real-gpus.md).
#include <algorithm>

#include "gradsync/comm/comm_error.hpp"
#include "gradsync/testbed/rank/rank_main.hpp"
#include "tests/gpu/gpu_job.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/device_conformance.hpp"
#include "tests/support/train_ranks.hpp"

using namespace gradsync;
using namespace gradsync::test;

namespace {

int gpus() {
  return std::min(make_cuda_runtime()->device_count(), 8);
}

CollectiveOptions labelled(std::int64_t step) {
  CollectiveOptions options;
  options.label.step = step;
  options.label.what = "test";
  return options;
}

float first_of(const Tensor& tensor) {
  std::vector<float> values(static_cast<std::size_t>(tensor.numel()));
  tensor.device().copy_to_host(std::as_writable_bytes(std::span(values)), tensor);
  return values.front();
}

float sum_of_ones(GpuRank& rank, std::int64_t elements) {
  Tensor tensor = Tensor::empty({elements}, DType::kFloat32, rank.device);
  rank.device.fill(tensor, 1);
  rank.group.allreduce(tensor, ReduceOp::kSum, labelled(0))->wait();
  return first_of(tensor);
}

std::vector<RankReport> train_on_gpus(const Scenario& scenario) {
  std::vector<RankReport> reports(static_cast<std::size_t>(scenario.ranks));
  GpuJob job(static_cast<int>(scenario.ranks));
  job.run_all([&](GpuRank& rank) {
    RankRuntime runtime;
    runtime.process_group = &rank.group;
    runtime.clock = &rank.clock;
    runtime.device = &rank.device;
    run_rank(scenario, runtime, reports[static_cast<std::size_t>(rank.group.rank())]);
  });
  return reports;
}

}  // namespace

TEST_CASE("one GPU: every operation against the CPU's") {
  if (skipped_without_gpus(1)) return;
  const auto cuda = make_cuda_runtime();
  cuda->set_device(0);
  const auto products = open_cublas();
  CudaDevice device(*cuda, *products, 0, {});
  check_device_conformance(device);
}

TEST_CASE("one GPU: all collectives, records, registration, and a second group") {
  if (skipped_without_gpus(1)) return;
  GpuJob job(1);
  for (const bool registers : {false, true}) {
    job.options.register_buffers = registers;  // of cudaMalloc's memory: NCCL may decline, quietly
    job.job_id = registers ? "registered" : "plain";
    job.run([&](GpuRank& rank) {
      if (sum_of_ones(rank, 1 << 20) != 1) throw Error(ErrorCode::kInternal, "wrong sum");
      Tensor tensor = Tensor::zeros({4}, DType::kFloat32, rank.device);
      Tensor gathered = Tensor::zeros({1, 4}, DType::kFloat32, rank.device);
      rank.group.broadcast(tensor, 0, labelled(1))->wait();
      rank.group.allgather(gathered, tensor, labelled(2))->wait();
      rank.group.barrier(labelled(3))->wait();
      rank.group.shutdown();
      for (const CollectiveRecord& record : rank.group.flight_recorder().snapshot()) {
        if (record.state != CollectiveState::kCompleted || record.started < record.issued ||
            record.completed < record.started) {
          throw Error(ErrorCode::kInternal, "a record is not in order");
        }
      }
    });
  }
}

TEST_CASE("one GPU: abort, and a group after it") {
  if (skipped_without_gpus(1)) return;
  GpuJob job(1);
  const auto errors = job.run_all([](GpuRank& rank) {
    rank.group.abort(ErrorCode::kMisuse, "the test says so");
    sum_of_ones(rank, 100);
  });
  REQUIRE(errors[0]);
  CHECK_THROWS_WITH(std::rethrow_exception(errors[0]), contains("the test says so"));
  job.job_id = "again";
  float sum = 0;
  job.run([&](GpuRank& rank) { sum = sum_of_ones(rank, 100); });
  CHECK(sum == 1);
}

TEST_CASE("one GPU: a transformer's losses are the CPU's within 1e-4 over 32 steps") {
  if (skipped_without_gpus(1)) return;
  Scenario scenario = tiny_scenario();
  scenario.ranks = 1;
  scenario.train.epochs = 4;
  const auto on_cpu = train_ranks(scenario);
  const auto on_gpu = train_on_gpus(scenario);
  INFO(on_gpu[0].error);
  REQUIRE(on_gpu[0].steps.size() == 32);
  for (std::size_t step = 0; step < 32; ++step) {
    CAPTURE(step);
    CHECK(*on_gpu[0].steps[step].loss == Approx(*on_cpu[0].steps[step].loss).epsilon(1e-4));
  }
  CHECK(train_on_gpus(scenario)[0].final_parameter_hash == on_gpu[0].final_parameter_hash);
}

TEST_CASE("several GPUs: sums are exact, ranks agree to the bit, losses are the CPU's") {
  if (skipped_without_gpus(2)) return;
  GpuJob job(gpus());
  std::vector<float> sums(static_cast<std::size_t>(gpus()));
  job.run([&](GpuRank& rank) {
    sums[static_cast<std::size_t>(rank.group.rank())] = sum_of_ones(rank, 3'000'001);
  });
  for (const float sum : sums) CHECK(sum == static_cast<float>(gpus()));

  Scenario scenario = tiny_scenario();
  scenario.train.epochs = 8;
  scenario.train.check_hashes = true;
  const auto on_cpu = train_ranks(scenario);
  const auto on_gpu = train_on_gpus(scenario);
  INFO(on_gpu[0].error);
  REQUIRE(on_gpu[0].steps.size() == 32);
  for (std::size_t step = 0; step < 32; ++step) {
    CHECK(*on_gpu[0].steps[step].loss == Approx(*on_cpu[0].steps[step].loss).epsilon(1e-4));
  }
}

TEST_CASE("several GPUs: a rank that never comes ends as a timeout") {
  if (skipped_without_gpus(2)) return;
  GpuJob job(2);
  job.options.timeout = Seconds(3);
  const auto errors = job.run_all([](GpuRank& rank) {
    if (rank.group.rank() == 0) sum_of_ones(rank, 1000);
    const Tensor tensor = Tensor::zeros({1}, DType::kFloat32, rank.device);
    while (true) first_of(tensor);
  });
  REQUIRE(errors[0]);
  CHECK_THROWS_WITH(std::rethrow_exception(errors[0]), contains("timed out after 3s"));
  REQUIRE(errors[1]);
  CHECK_THROWS_WITH(std::rethrow_exception(errors[1]), contains("rank 0 failed first"));
}
