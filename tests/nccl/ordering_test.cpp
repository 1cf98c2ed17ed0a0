// The communication stream and the compute stream meet at events and nowhere else. Each direction
// is tested with a stream that is held up, and once more with the event left out: then it must
// fail.
#include <chrono>
#include <thread>

#include "tests/fake_cuda/cuda_job.hpp"
#include "tests/support/catch.hpp"

using namespace gradsync;
using namespace gradsync::test;

namespace {

using Mutation = FakeCuda::Mutation;

/// Looks until `done`, for as long as a mistake may need to show; without one, for a moment only.
template <typename Done>
void give_time_to_go_wrong(Mutation mutation, Done done) {
  using Steady = std::chrono::steady_clock;
  const auto patience = mutation == Mutation::kNone ? std::chrono::milliseconds(30)
                                                    : std::chrono::milliseconds(20'000);
  const auto end = Steady::now() + patience;
  while (!done() && Steady::now() < end) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

/// The compute stream has yet to write what is reduced.
std::vector<float> reduce_what_is_not_written_yet(Mutation mutation) {
  CudaJob job(2);
  std::vector<float> result;
  job.run([&](CudaRank& rank) {
    rank.cuda.set_mutation(mutation);
    const int r = rank.group->rank();
    Tensor tensor = on_device<float>(rank, {-1, -1});
    values_of<float>(tensor);  // it is there
    WorkPtr work;
    {
      Gate gate(rank.compute_stream());
      rank.device->fill(tensor, r + 1);
      work = rank.group->allreduce(tensor, ReduceOp::kSum, labelled(0));
      give_time_to_go_wrong(mutation, [&] { return work->is_completed(); });
    }
    work->wait();
    if (r == 0) result = values_of<float>(tensor);
    rank.cuda.set_mutation(Mutation::kNone);
    values_of<float>(tensor);
  });
  return result;
}

/// The communication stream has yet to reduce what is read.
std::vector<float> read_what_is_not_reduced_yet(Mutation mutation) {
  CudaJob job(2);
  std::vector<float> result;
  job.run([&](CudaRank& rank) {
    const int r = rank.group->rank();
    Tensor tensor = on_device<float>(rank, {static_cast<float>(r + 1)});
    Tensor copy = tensor.empty_like();
    rank.cuda.set_mutation(mutation);
    {
      Gate gate(rank.communication_stream());
      rank.group->allreduce(tensor, ReduceOp::kSum, labelled(0))->wait();
      rank.device->copy(copy, tensor);
      const EventPtr copied = take_event(rank.device->events());
      rank.cuda.record(copied.get(), rank.device->compute_stream());
      give_time_to_go_wrong(mutation, [&] { return rank.cuda.is_done(copied.get()); });
    }
    rank.cuda.set_mutation(Mutation::kNone);
    if (r == 0) result = values_of<float>(copy);
    rank.group->barrier(labelled(1))->wait();
  });
  return result;
}

}  // namespace

TEST_CASE(
    "nccl: a collective starts when its inputs are written; without the event this test fails") {
  CHECK(reduce_what_is_not_written_yet(Mutation::kNone) == std::vector<float>{3, 3});
  CHECK(reduce_what_is_not_written_yet(Mutation::kForgetInputs) != std::vector<float>{3, 3});
}

TEST_CASE("nccl: results are read when they are there; without the event this test fails") {
  CHECK(read_what_is_not_reduced_yet(Mutation::kNone) == std::vector<float>{3});
  CHECK(read_what_is_not_reduced_yet(Mutation::kForgetResult) != std::vector<float>{3});
}

TEST_CASE("nccl: a collective does not wait for what is computed after its call") {
  CudaJob job(1);
  bool overlapped = false;
  job.run([&](CudaRank& rank) {
    Tensor tensor = on_device<float>(rank, {1});
    const WorkPtr work = rank.group->allreduce(tensor, ReduceOp::kSum, labelled(0));
    Gate gate(rank.compute_stream());  // the rest of backward, which never ends
    for (int look = 0; look < 20'000 && !work->is_completed(); ++look) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    overlapped = work->is_completed();
  });
  CHECK(overlapped);
}
