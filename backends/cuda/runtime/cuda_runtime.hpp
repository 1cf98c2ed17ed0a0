#pragma once

#include <memory>

#include "gradsync/backends/cuda/cublas_api.hpp"
#include "gradsync/backends/cuda/cuda_api.hpp"

namespace gradsync {

/// The real CUDA runtime.
std::unique_ptr<CudaApi> make_cuda_runtime();

/// Loads cuBLAS at run time for the calling thread's device (libcublas of the CUDA version of the
/// build). Throws Error(kBackendUnavailable) listing where it looked.
std::unique_ptr<CublasApi> open_cublas();

}  // namespace gradsync
