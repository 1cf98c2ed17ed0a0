#pragma once

#include <functional>
#include <memory>

#include "gradsync/backends/cuda/cublas_api.hpp"
#include "gradsync/backends/nccl/nccl_api.hpp"
#include "gradsync/backends/rank/rank_process.hpp"

namespace gradsync {

/// The libraries that a rank on a GPU calls. cuBLAS is opened when the GPU has been chosen.
struct GpuLibraries {
  CudaApi& cuda;
  NcclApi& nccl;
  std::function<std::unique_ptr<CublasApi>()> open_cublas;
};

/// A whole rank on NCCL (see run_rank_process), on the GPU that its local rank and the scenario's
/// nccl.device_ids choose. Throws nothing; Error(kBackendUnavailable) for a GPU that is not there
/// is in the report.
RankProcessResult run_nccl_rank(const Scenario& scenario, const RankEnvironment& environment,
                                const RankProcessOptions& options, const GpuLibraries& libraries);

/// The GPU of a rank, as CUDA numbers those that CUDA_VISIBLE_DEVICES leaves:
/// device_ids[local_rank], or local_rank where the list is empty. Throws Error(kBackendUnavailable)
/// that says how many ranks and GPUs there are.
int choose_gpu(const std::vector<std::int64_t>& device_ids, const RankEnvironment& environment,
               int gpus);

}  // namespace gradsync
