// The nccl backend of gradsync_on_stand_in: the command as it is, and under it CUDA and NCCL that
// need no GPU. So the tests drive whole jobs of processes.
#include <memory>

#include "gradsync/backends/rank/nccl_rank.hpp"
#include "tests/fake_cuda/fake_cuda.hpp"
#include "tests/fake_cuda/process_nccl.hpp"
#include "tools/command/backends.hpp"

namespace gradsync {
namespace {

RankProcessResult run_rank_on_stand_in(const Scenario& scenario, const RankEnvironment& environment,
                                       const RankProcessOptions& options) {
  test::FakeCuda cuda(environment.local_rank, environment.local_world_size);
  test::ProcessNccl nccl(environment);
  return run_nccl_rank(scenario, environment, options,
                       {cuda, nccl, [] { return std::make_unique<test::FakeCublas>(); }});
}

}  // namespace

Backend nccl_backend() {
  Backend backend;
  backend.descriptor = backend_descriptor("nccl");
  backend.descriptor.summary = "a stand-in of the tests, without a GPU";
  backend.run_rank = run_rank_on_stand_in;
  return backend;
}

}  // namespace gradsync
