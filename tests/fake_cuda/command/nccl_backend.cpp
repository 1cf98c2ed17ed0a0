// The nccl backend of gradsync_on_stand_in: the command as it is, and under it CUDA and NCCL that
// need no GPU. So the tests drive whole jobs of processes.
#include <memory>

#include "gradsync/backends/rank/nccl_rank.hpp"
#include "tests/fake_cuda/fake_cuda.hpp"
#include "tests/fake_cuda/process_nccl.hpp"
#include "tools/command/backends.hpp"
#include "tools/command/rank_request.hpp"

namespace gradsync {
namespace {

RankResult run_rank_on_stand_in(const Scenario& scenario, const RankRequest& request) {
  test::FakeCuda cuda(request.environment.local_rank, request.environment.local_world_size);
  test::ProcessNccl nccl(request.environment);
  return rank_result(
      run_nccl_rank(scenario, request.environment, process_options(request),
                    {cuda, nccl, [] { return std::make_unique<test::FakeCublas>(); }}));
}

}  // namespace

Backend nccl_backend() {
  Backend backend;
  backend.name = "nccl";
  backend.summary = "a stand-in of the tests, without a GPU";
  backend.run_rank = run_rank_on_stand_in;
  return backend;
}

}  // namespace gradsync
