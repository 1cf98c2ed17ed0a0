#pragma once

#include <memory>

#include "gradsync/backends/cuda/cublas_api.hpp"
#include "gradsync/backends/cuda/cuda_api.hpp"

namespace gradsync {

/// The CUDA runtime itself.
std::unique_ptr<CudaApi> make_cuda_runtime();

/// cuBLAS for the calling thread's device, opened when it is called (libcublas of the CUDA version
/// that this was built with). Throws Error(kBackendUnavailable) that says where it was looked for.
std::unique_ptr<CublasApi> open_cublas();

}  // namespace gradsync
