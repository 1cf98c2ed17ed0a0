// Groups of some of the ranks: their communicators, their streams, and how they end.
#include <array>
#include <chrono>
#include <thread>

#include "gradsync/comm/comm_error.hpp"
#include "tests/fake_cuda/cuda_job.hpp"
#include "tests/support/catch.hpp"

using namespace gradsync;
using namespace gradsync::test;

namespace {

std::string what_of(const std::exception_ptr& error) {
  if (!error) return "it ended well";
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    return e.what();
  }
}

ErrorCode code_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const Error& e) {
    return e.code();
  }
}

/// The sum over the group's ranks of 1, 10, 100 on rank 0, 1, 2 of the job, seen by the host.
float sum_in(ProcessGroup& group, CudaRank& rank, std::int64_t step) {
  constexpr std::array<float, 3> kValues{1, 10, 100};
  Tensor tensor = on_device<float>(rank, {kValues[static_cast<std::size_t>(rank.group->rank())]});
  group.allreduce(tensor, ReduceOp::kSum, labelled(step))->wait();
  return values_of<float>(tensor).front();
}

}  // namespace

TEST_CASE("nccl: subgroups reduce over their members, beside the group of all") {
  const bool knows_split = GENERATE(true, false);
  CudaJob job(3);
  for (int r = 0; r < 3; ++r) job.rank(r).nccl.knows_split = knows_split;
  std::vector<std::vector<float>> sums(3);
  std::vector<CollectiveRecord> records;
  job.run([&](CudaRank& rank) {
    const int r = rank.group->rank();
    const auto all = rank.group->split("all", {0, 1, 2});
    auto& found = sums[static_cast<std::size_t>(r)];
    std::shared_ptr<ProcessGroup> pair;
    if (r != 1) {
      pair = rank.group->split("ends", {0, 2});
      CHECK(pair->rank() == (r == 0 ? 0 : 1));
      CHECK(pair->size() == 2);
      found.push_back(sum_in(*pair, rank, 0));
    }
    found.push_back(sum_in(*rank.group, rank, 1));
    found.push_back(sum_in(*all, rank, 2));
    if (pair) {
      // Without the host in between: two groups' collectives are ordered by events alone.
      Tensor tensor = on_device<float>(rank, {r == 0 ? 1.0f : 100.0f});
      pair->allreduce(tensor, ReduceOp::kSum, labelled(3))->wait();
      pair->allreduce(tensor, ReduceOp::kSum, labelled(4))->wait();
      found.push_back(values_of<float>(tensor).front());
      pair->shutdown();
    }
    if (r == 0) records = rank.group->flight_recorder().snapshot();
  });
  CHECK(sums[0] == std::vector<float>{101, 111, 111, 202});
  CHECK(sums[1] == std::vector<float>{111, 111});
  CHECK(sums[2] == std::vector<float>{101, 111, 111, 202});
  CHECK(job.rank(0).nccl.splits() == (knows_split ? 1 : 0));  // of all ranks; a pair is made anew
  for (int r = 0; r < 3; ++r) {
    CHECK(job.rank(r).nccl.destroyed() == (r == 1 ? 2 : 3));
    CHECK(job.rank(r).nccl.aborts() == 0);
  }
  // A group has sequence numbers of its own; the first entry is its creation.
  std::vector<std::int64_t> of_pair;
  for (const CollectiveRecord& record : records) {
    if (record.group == "ends") of_pair.push_back(record.sequence);
  }
  CHECK(of_pair == std::vector<std::int64_t>{0, 1, 2, 3});
}

TEST_CASE("nccl: a subgroup that not all members make ends in time, naming who did not come") {
  CudaJob job(3);
  job.options.timeout = Seconds(1);
  const auto errors = job.run_on({0, 1, 2}, [&](CudaRank& rank) {
    if (rank.group->rank() == 1) {
      rank.group->stall();
    } else {
      rank.group->split("all", {0, 1, 2});
    }
  });
  CHECK_THAT(what_of(errors[0]), contains("missing: rank 1"));
  CHECK(code_of(errors[0]) == ErrorCode::kTimeout);
  CHECK(code_of(errors[1]) == ErrorCode::kRankDied);  // the others have left
}

TEST_CASE("nccl: a subgroup's communicator that does not come up is given up, and the job ends") {
  const bool knows_split = GENERATE(true, false);
  CudaJob job(2);
  job.options.timeout = Seconds(1);
  const auto errors = job.run_on({0, 1}, [&](CudaRank& rank) {
    rank.nccl.knows_split = knows_split;
    if (rank.group->rank() == 1) rank.nccl.faults.creation_stays_in_progress = true;
    rank.group->split("all", {0, 1});
  });
  for (const auto& error : errors) {
    CHECK_THAT(what_of(error), contains("\"all\" of 2 ranks did not come up within"));
  }
  for (int r = 0; r < 2; ++r) CHECK(job.rank(r).nccl.aborts() == 2);  // the group of all, too
}

TEST_CASE("nccl: the watchdog ends a subgroup's collective that waits for ever, and the job") {
  CudaJob job(3);
  job.options.timeout = Seconds(0.5);
  std::vector<CollectiveRecord> records;
  const auto errors = job.run_on({0, 1, 2}, [&](CudaRank& rank) {
    const int r = rank.group->rank();
    if (r == 0) rank.group->stall();
    const auto pair = rank.group->split("pair", {1, 2});
    if (r == 2) rank.group->stall();
    try {
      sum_in(*pair, rank, 5);
    } catch (const CommError& e) {
      CHECK(e.record().group == "pair");
      for (int look = 0; look < 2000; ++look) {  // the watchdog ends the works on its own thread
        records = rank.group->flight_recorder().snapshot();
        if (records.back().state == CollectiveState::kFailed) break;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      throw;
    }
  });
  CHECK(code_of(errors[1]) == ErrorCode::kTimeout);
  CHECK_THAT(what_of(errors[1]), contains("timed out after 0.5s in allreduce #1, step 5"));
  CHECK(code_of(errors[0]) == ErrorCode::kPeerFailed);
  CHECK(code_of(errors[2]) == ErrorCode::kPeerFailed);
  REQUIRE_FALSE(records.empty());
  CHECK(records.back().group == "pair");
  CHECK(records.back().state == CollectiveState::kFailed);
  for (int r = 0; r < 3; ++r) CHECK(job.rank(r).nccl.aborts() == (r == 0 ? 1 : 2));
}

TEST_CASE("nccl: collectives that differ between ranks are a desync, not a hang") {
  CudaJob job(3);
  job.options.timeout = Seconds(60);
  const bool sizes = GENERATE(true, false);
  const auto begin = std::chrono::steady_clock::now();
  const auto errors = job.run_on({0, 1, 2}, [&](CudaRank& rank) {
    const bool odd = rank.group->rank() == 1;
    Tensor tensor = Tensor::zeros({sizes && odd ? 8 : 4}, DType::kFloat32, *rank.device);
    rank.group->allreduce(tensor, ReduceOp::kSum, labelled(3, !sizes && odd ? "metrics" : "loss"))
        ->wait();
    values_of<float>(tensor);
    rank.group->shutdown();
  });
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(50));
  for (const auto& error : errors) {
    REQUIRE(error);
    CHECK(code_of(error) == ErrorCode::kDesync);
    CHECK_THAT(what_of(error), contains("rank 1") && contains(sizes ? "8 float32" : "(metrics)"));
  }
}

TEST_CASE("nccl: without detail nothing is compared") {
  CudaJob job(2);
  std::vector<float> sums(2);
  job.run([&](CudaRank& rank) {
    rank.group->set_detail(false);
    const int r = rank.group->rank();
    Tensor tensor = on_device<float>(rank, {1});
    rank.group->allreduce(tensor, ReduceOp::kSum, labelled(r, r == 0 ? "loss" : "metrics"))->wait();
    sums[static_cast<std::size_t>(r)] = values_of<float>(tensor).front();
  });
  CHECK(sums == std::vector<float>{2, 2});
}
