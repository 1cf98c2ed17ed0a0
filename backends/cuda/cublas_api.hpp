#pragma once

#include <cstdint>

#include "gradsync/backends/cuda/cuda_api.hpp"
#include "gradsync/tensor/dtype.hpp"

namespace gradsync {

/// A row-major matrix, or a batch of them at a fixed distance, in device memory.
struct MatrixOperand {
  const void* data;
  std::int64_t stride;            ///< elements between the starts of two rows
  std::int64_t batch_stride = 0;  ///< elements between the starts of two matrices
  bool transposed = false;        ///< multiply by the transpose
};

/// c[m, n] = alpha a[m, k] b[k, n] + beta c, `batch` times.
struct MatrixProduct {
  DType dtype;  ///< float32 or float64
  std::int64_t m, n, k;
  std::int64_t batch = 1;
  double alpha = 1;
  double beta = 0;
  MatrixOperand a;
  MatrixOperand b;
  void* c = nullptr;
  std::int64_t c_stride = 0;
  std::int64_t c_batch_stride = 0;
};

/// The part of cuBLAS that the backend uses. Implementations: the real library
/// (runtime/cublas_library.hpp; pedantic mode and a private workspace, so that equal calls give
/// equal bits), and the tests' fake. One rank, one thread.
class CublasApi {
 public:
  virtual ~CublasApi() = default;
  /// In stream order. Throws Error(kInternal) if cuBLAS returns an error.
  virtual void multiply(const MatrixProduct& product, CudaStream stream) = 0;
};

}  // namespace gradsync
