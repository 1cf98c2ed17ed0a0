#include "gradsync/backends/rank/nccl_rank.hpp"

#include <fmt/format.h>

#include "gradsync/backends/cuda/cuda_clock.hpp"
#include "gradsync/backends/nccl/nccl_process_group.hpp"
#include "gradsync/testbed/rank/factories.hpp"

namespace gradsync {

int choose_gpu(const std::vector<std::int64_t>& device_ids, const RankEnvironment& environment,
               int gpus) {
  const auto local_rank = static_cast<std::size_t>(environment.local_rank);
  if (!device_ids.empty() && local_rank >= device_ids.size()) {
    throw Error(
        ErrorCode::kBackendUnavailable,
        fmt::format("rank {}: nccl.device_ids names {} GPUs, and there are {} ranks on this "
                    "machine",
                    environment.rank, device_ids.size(), environment.local_world_size));
  }
  const std::int64_t chosen = device_ids.empty() ? environment.local_rank : device_ids[local_rank];
  if (chosen < 0 || chosen >= gpus) {
    throw Error(
        ErrorCode::kBackendUnavailable,
        fmt::format("rank {} (local rank {} of {}) wants GPU {}, and this machine shows {} "
                    "(see nvidia-smi and CUDA_VISIBLE_DEVICES); start at most one rank a GPU",
                    environment.rank, environment.local_rank, environment.local_world_size, chosen,
                    gpus));
  }
  return static_cast<int>(chosen);
}

RankProcessResult run_nccl_rank(const Scenario& scenario, const RankEnvironment& environment,
                                const RankProcessOptions& options, const GpuLibraries& libraries) {
  return run_rank_process(scenario, environment, options, [&](RankProcess& process) {
    const int gpu =
        choose_gpu(scenario.nccl.device_ids, environment, libraries.cuda.device_count());
    libraries.cuda.set_device(gpu);
    const std::unique_ptr<CublasApi> products = libraries.open_cublas();
    CudaDevice::Options device_options;
    // Bounds kernels that never end; a collective ends earlier, by its own timeout.
    device_options.patience += scenario.timeout;
    const bool registers = scenario.nccl.register_buffers && libraries.nccl.can_register();
    if (registers) {
      device_options.memory = {
          [&](Bytes nbytes) { return libraries.nccl.allocate(static_cast<std::size_t>(nbytes)); },
          [&](void* memory) { libraries.nccl.release(memory); }};
    }
    CudaDevice device(libraries.cuda, *products, gpu, device_options);
    CudaClock clock(device, process.clock_origin());
    NcclProcessGroup::Options group_options{make_group_options(scenario)};
    group_options.register_buffers = registers;
    NcclProcessGroup group(environment, process.job(), device, libraries.nccl, clock,
                           group_options);
    process.run(
        group, [&](ErrorCode code, const std::string& cause) { group.abort(code, cause); }, clock,
        device);
  });
}

}  // namespace gradsync
