#pragma once

#include <functional>
#include <memory>

#include "gradsync/backends/cuda/cublas_api.hpp"
#include "gradsync/backends/nccl/nccl_api.hpp"
#include "gradsync/backends/rank/rank_process.hpp"

namespace gradsync {

/// The libraries that a rank on a GPU uses. cuBLAS is loaded once the GPU has been chosen.
struct GpuLibraries {
  CudaApi& cuda;
  NcclApi& nccl;
  std::function<std::unique_ptr<CublasApi>()> open_cublas;
};

/// Runs a complete rank on NCCL (see run_rank_process), on the GPU selected by its local rank and
/// the scenario's nccl.device_ids. Throws nothing; if the GPU is missing, the report holds
/// Error(kBackendUnavailable).
RankProcessResult run_nccl_rank(const Scenario& scenario, const RankEnvironment& environment,
                                const RankProcessOptions& options, const GpuLibraries& libraries);

/// The GPU of a rank, numbered as under CUDA_VISIBLE_DEVICES: device_ids[local_rank], or local_rank
/// if the list is empty. Throws Error(kBackendUnavailable) with the numbers of ranks and GPUs.
int choose_gpu(const std::vector<std::int64_t>& device_ids, const RankEnvironment& environment,
               int gpus);

}  // namespace gradsync
