#include "tools/command/backends.hpp"

#ifdef GRADSYNC_HAVE_NCCL
#include "gradsync/backends/cuda/runtime/cuda_runtime.hpp"
#include "gradsync/backends/nccl/runtime/nccl_library.hpp"
#include "gradsync/backends/rank/nccl_rank.hpp"
#include "gradsync/core/error.hpp"
#endif

namespace gradsync {
namespace {

#ifdef GRADSYNC_HAVE_NCCL
std::string what_is_missing_here() {
  const auto cuda = make_cuda_runtime();
  if (cuda->device_count() == 0) {
    return "it is built in, but this machine shows no GPU: " + cuda->no_device_reason() +
           " (see nvidia-smi and docs/real-gpus.md)";
  }
  try {
    open_nccl();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

RankProcessResult run_rank_on_nccl(const Scenario& scenario, const RankEnvironment& environment,
                                   const RankProcessOptions& options) {
  const auto cuda = make_cuda_runtime();
  const auto nccl = open_nccl();
  return run_nccl_rank(scenario, environment, options, {*cuda, *nccl, open_cublas});
}
#endif

}  // namespace

Backend nccl_backend() {
  Backend backend;
  backend.descriptor = backend_descriptor("nccl");
#ifdef GRADSYNC_HAVE_NCCL
  backend.run_rank = run_rank_on_nccl;
  backend.what_is_missing_here = what_is_missing_here;
#else
  backend.why_not = GRADSYNC_NCCL_WHY_NOT;
#endif
  return backend;
}

}  // namespace gradsync
