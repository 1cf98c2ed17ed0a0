#include <chrono>
#include <thread>

#include "gradsync/backends/cuda/caching_pool.hpp"
#include "gradsync/comm/comm_error.hpp"
#include "gradsync/tensor/kernels.hpp"
#include "tests/fake_cuda/cuda_job.hpp"
#include "tests/support/catch.hpp"

using namespace gradsync;
using namespace gradsync::test;

namespace {

/// What ended a rank, as text and code.
struct End {
  ErrorCode code = ErrorCode::kInternal;
  std::string what = "it ended well";
};

End end_of(const std::exception_ptr& error) {
  if (!error) return {};
  try {
    std::rethrow_exception(error);
  } catch (const Error& e) {
    return {e.code(), e.what()};
  } catch (const std::exception& e) {
    return {ErrorCode::kInternal, e.what()};
  }
}

/// What a rank does that does not come: looks at the GPU until somebody ends the job.
void stay_away(CudaRank& rank) {
  const Tensor tensor = Tensor::zeros({1}, DType::kFloat32, *rank.device);
  while (true) {
    values_of<float>(tensor);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

/// The sum over the ranks, on the host.
float sum_of_ones(CudaRank& rank, std::int64_t step) {
  Tensor tensor = on_device<float>(rank, {1});
  rank.group->allreduce(tensor, ReduceOp::kSum, labelled(step))->wait();
  return values_of<float>(tensor).front();
}

}  // namespace

TEST_CASE("nccl: a rank that never comes is a timeout, told in the words of a hang") {
  CudaJob job(2);
  job.options.timeout = Seconds(0.5);
  std::vector<CollectiveRecord> records;
  const auto errors = job.run_on({0, 1}, [&](CudaRank& rank) {
    if (rank.group->rank() == 1) stay_away(rank);
    try {
      sum_of_ones(rank, 7);
    } catch (const CommError&) {
      // The watchdog ends the works on its own thread.
      for (int look = 0; look < 2000; ++look) {
        records = rank.group->flight_recorder().snapshot();
        if (records.front().state == CollectiveState::kFailed) break;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      throw;
    }
  });
  const End waiting = end_of(errors[0]);
  CHECK(waiting.code == ErrorCode::kTimeout);
  CHECK_THAT(waiting.what, contains("timed out after 0.5s in allreduce #0, step 7"));
  CHECK_THAT(waiting.what, contains("waiting for the other ranks"));
  const End absent = end_of(errors[1]);
  CHECK(absent.code == ErrorCode::kPeerFailed);
  CHECK_THAT(absent.what, contains("rank 0 failed first"));
  REQUIRE(records.size() == 1);
  CHECK(records[0].state == CollectiveState::kFailed);
  CHECK(records[0].started.count() >= 0);  // it sat on the GPU, waiting
  CHECK(job.rank(0).nccl.aborts() == 1);
  CHECK(job.rank(1).nccl.aborts() == 1);
}

TEST_CASE("nccl: collectives of different sizes hang where nobody compares, and end as a timeout") {
  CudaJob job(2);
  job.options.timeout = Seconds(0.5);
  const auto errors = job.run_on({0, 1}, [&](CudaRank& rank) {
    rank.group->set_detail(false);
    Tensor tensor = Tensor::zeros({rank.group->rank() + 1}, DType::kFloat32, *rank.device);
    rank.group->allreduce(tensor, ReduceOp::kSum, labelled(0))->wait();
    values_of<float>(tensor);
  });
  const ErrorCode first = end_of(errors[0]).code, second = end_of(errors[1]).code;
  CHECK((first == ErrorCode::kTimeout || second == ErrorCode::kTimeout));
  CHECK((first == ErrorCode::kTimeout || first == ErrorCode::kPeerFailed));
}

TEST_CASE("nccl: an asynchronous error of one rank ends all, with NCCL's words") {
  const bool remote = GENERATE(false, true);
  CudaJob job(3);
  const auto errors = job.run_on({0, 1, 2}, [&](CudaRank& rank) {
    sum_of_ones(rank, 0);
    if (rank.group->rank() == 1) {
      rank.nccl.faults.async_error = remote ? NcclResult::kRemoteError : NcclResult::kSystemError;
    }
    stay_away(rank);
  });
  const std::string word = remote ? "ncclRemoteError" : "ncclSystemError";
  for (const auto& error : errors) CHECK_THAT(end_of(error).what, contains(word));
  if (remote) {
    CHECK(end_of(errors[0]).code == ErrorCode::kRankDied);
  } else {
    CHECK(end_of(errors[1]).code == ErrorCode::kInternal);
    CHECK(end_of(errors[0]).code == ErrorCode::kPeerFailed);
  }
}

TEST_CASE("nccl: a call that NCCL refuses fails on that rank, and ends the others") {
  CudaJob job(2);
  const auto errors = job.run_on({0, 1}, [&](CudaRank& rank) {
    sum_of_ones(rank, 0);
    if (rank.group->rank() == 1) rank.nccl.faults.next_call = NcclResult::kInvalidUsage;
    sum_of_ones(rank, 1);
  });
  CHECK(end_of(errors[1]).code == ErrorCode::kInternal);
  CHECK_THAT(end_of(errors[1]).what, contains("ncclInvalidUsage") && contains("step 1"));
  CHECK(end_of(errors[0]).code == ErrorCode::kPeerFailed);
}

TEST_CASE("nccl: a communicator that does not come up is given up at its deadline") {
  CudaJob job(2);
  job.options.timeout = Seconds(1);
  job.rank(1).nccl.faults.creation_stays_in_progress = true;
  const auto errors = job.run_on({0, 1}, [](CudaRank&) {});
  for (const auto& error : errors) {
    const End end = end_of(error);
    CHECK((end.code == ErrorCode::kTimeout || end.code == ErrorCode::kPeerFailed));
    CHECK_THAT(end.what, contains("did not come up within"));
    CHECK_THAT(end.what, contains("NCCL_DEBUG=INFO"));
  }
  CHECK(job.rank(0).nccl.aborts() == 1);
  CHECK(job.rank(1).nccl.aborts() == 1);
}

TEST_CASE("nccl: a communicator that fails to come up says why, on all ranks") {
  CudaJob job(2);
  job.rank(1).nccl.faults.creation_fails = NcclResult::kSystemError;
  const auto errors = job.run_on({0, 1}, [&](CudaRank& rank) { stay_away(rank); });
  for (const auto& error : errors) CHECK_THAT(end_of(error).what, contains("ncclSystemError"));
}

TEST_CASE("nccl: two ranks on one GPU, or with two versions of NCCL, are refused") {
  const bool versions = GENERATE(false, true);
  CudaJob job(2);
  if (versions) {
    job.rank(1).nccl.version_number = 22203;
  } else {
    job.rank(1).cuda.set_number(0);
  }
  const auto errors = job.run_on({0, 1}, [&](CudaRank& rank) { stay_away(rank); });
  const std::string what = end_of(errors[0]).what + end_of(errors[1]).what;
  CHECK_THAT(what, contains(versions ? "2.22.3" : "both use GPU"));
}

TEST_CASE("nccl: abort ends collectives in flight at once, on every rank") {
  CudaJob job(2);
  job.options.timeout = Seconds(60);
  const auto begin = std::chrono::steady_clock::now();
  const auto errors = job.run_on({0, 1}, [&](CudaRank& rank) {
    if (rank.group->rank() == 1) {
      rank.group->abort(ErrorCode::kMisuse, "the test says so");
      stay_away(rank);
    }
    sum_of_ones(rank, 0);
  });
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(50));  // not the timeout
  CHECK(end_of(errors[0]).code == ErrorCode::kPeerFailed);
  CHECK_THAT(end_of(errors[0]).what, contains("the test says so"));
  CHECK(end_of(errors[1]).code == ErrorCode::kMisuse);
}

TEST_CASE("nccl: a failure elsewhere shows in the next collective, not in the GPU's own work") {
  CudaJob job(2);
  std::vector<float> read;
  const auto errors = job.run_on({0, 1}, [&](CudaRank& rank) {
    sum_of_ones(rank, 0);
    if (rank.group->rank() == 1) throw Error(ErrorCode::kInternal, "gone");
    CHECK_THROWS_WITH(rank.group->stall(), contains("rank 1 left the job"));
    read = values_of<float>(on_device<float>(rank, {5}));
    sum_of_ones(rank, 9);
  });
  CHECK(read == std::vector<float>{5});
  CHECK(end_of(errors[0]).code == ErrorCode::kRankDied);
  CHECK_THAT(end_of(errors[0]).what, contains("step 9"));
}

TEST_CASE("nccl: a rank that leaves without finishing has died, for the others") {
  CudaJob job(2);
  const auto errors = job.run_on({0, 1}, [&](CudaRank& rank) {
    if (rank.group->rank() == 1) throw Error(ErrorCode::kInternal, "gone");
    sum_of_ones(rank, 0);
  });
  CHECK(end_of(errors[0]).code == ErrorCode::kRankDied);
  CHECK_THAT(end_of(errors[0]).what, contains("rank 1 left the job without finishing"));
}

TEST_CASE("nccl: after a failure the ranks can start again") {
  CudaJob job(2);
  const auto errors = job.run_on({0, 1}, [&](CudaRank& rank) {
    if (rank.group->rank() == 1) throw Error(ErrorCode::kInternal, "gone");
    sum_of_ones(rank, 0);
  });
  REQUIRE(errors[0]);
  job.job_id = "the next attempt";
  std::vector<float> sums(2);
  job.run([&](CudaRank& rank) {
    sums[static_cast<std::size_t>(rank.group->rank())] = sum_of_ones(rank, 0);
  });
  CHECK(sums == std::vector<float>{2, 2});
}

TEST_CASE("nccl: a collective that waits for the GPU's own work says so") {
  CudaJob job(1);
  job.options.timeout = Seconds(0.3);
  const auto errors = job.run_on({0}, [&](CudaRank& rank) {
    Tensor tensor = on_device<float>(rank, {1});
    Gate gate(rank.compute_stream());
    rank.group->allreduce(tensor, ReduceOp::kSum, labelled(0))->wait();
    values_of<float>(tensor);
  });
  CHECK(end_of(errors[0]).code == ErrorCode::kTimeout);
  CHECK_THAT(end_of(errors[0]).what, contains("the GPU is still at the work before it"));
}

TEST_CASE(
    "cuda: memory that is used up is an error with the sizes; cached memory goes back first") {
  FakeCuda cuda;
  FakeCublas products;
  CudaDevice device(cuda, products, 0, {});
  constexpr std::int64_t kMiB = 1 << 20;
  cuda.set_memory(cuda.allocated() + 12 * kMiB);
  {
    const Tensor a = Tensor::empty({4 * kMiB}, DType::kUInt8, device);
    const Tensor b = Tensor::empty({4 * kMiB}, DType::kUInt8, device);
  }
  CHECK(device.memory_statistics().cached == 8 * kMiB);
  {
    const Tensor again = Tensor::empty({4 * kMiB}, DType::kUInt8, device);
    CHECK(device.memory_statistics().source_calls == 2);  // no new memory
  }
  const Tensor large = Tensor::empty({10 * kMiB}, DType::kUInt8, device);  // only without the cache
  CHECK(device.memory_statistics().cached == 0);
  CHECK_THROWS_WITH(Tensor::empty({6 * kMiB}, DType::kUInt8, device),
                    contains("out of GPU memory") && contains("in use by this rank"));
}

TEST_CASE("cuda: an index outside its table is found when the host looks") {
  FakeCuda cuda;
  FakeCublas products;
  CudaDevice device(cuda, products, 0, {});
  const Tensor weight = Tensor::zeros({3, 2}, DType::kFloat32, device);
  Tensor ids = Tensor::empty({4}, DType::kInt64, device);
  const std::vector<std::int64_t> values{0, 1, 3, 2};
  device.copy_from_host(ids, std::as_bytes(std::span(values)));
  Tensor out = Tensor::empty({4, 2}, DType::kFloat32, device);
  device.kernels().embedding_forward(out, weight, ids);
  CHECK_THROWS_WITH(values_of<float>(out), contains("position 2") && contains("vocab_size"));
  CHECK_NOTHROW(values_of<float>(out));
}
