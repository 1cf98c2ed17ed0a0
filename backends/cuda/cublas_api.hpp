#pragma once

#include <cstdint>

#include "gradsync/backends/cuda/cuda_api.hpp"
#include "gradsync/tensor/dtype.hpp"

namespace gradsync {

/// A row-major matrix, or `batch` of them at equal distances, in device memory.
struct MatrixOperand {
  const void* data;
  std::int64_t stride;            ///< elements between the starts of two rows
  std::int64_t batch_stride = 0;  ///< elements between two matrices
  bool transposed = false;        ///< the product takes its transpose
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

/// What the backend uses of cuBLAS. Implementations: the real library (runtime/cublas_library.hpp,
/// in pedantic mode and with a workspace of its own, so that the same call gives the same bits),
/// and the stand-in of the tests. One rank, one thread.
class CublasApi {
 public:
  virtual ~CublasApi() = default;
  /// In stream order. Throws Error(kInternal) when the library refuses.
  virtual void multiply(const MatrixProduct& product, CudaStream stream) = 0;
};

}  // namespace gradsync
