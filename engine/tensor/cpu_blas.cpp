#include "gradsync/tensor/cpu_blas.hpp"

#include <cblas.h>

// OpenBLAS's own call; missing in other BLAS libraries (which are single-threaded in Debian).
extern "C" void openblas_set_num_threads(int threads) __attribute__((weak));

namespace gradsync::cpu {
namespace {

CBLAS_TRANSPOSE to_cblas(Op op) {
  return op == Op::kNone ? CblasNoTrans : CblasTrans;
}
int to_int(std::int64_t size) {
  return static_cast<int>(size);
}

}  // namespace

void gemm(Op op_a, Op op_b, std::int64_t m, std::int64_t n, std::int64_t k, float alpha,
          Matrix<const float> a, Matrix<const float> b, float beta, Matrix<float> c) {
  cblas_sgemm(CblasRowMajor, to_cblas(op_a), to_cblas(op_b), to_int(m), to_int(n), to_int(k), alpha,
              a.data, to_int(a.stride), b.data, to_int(b.stride), beta, c.data, to_int(c.stride));
}

void gemm(Op op_a, Op op_b, std::int64_t m, std::int64_t n, std::int64_t k, double alpha,
          Matrix<const double> a, Matrix<const double> b, double beta, Matrix<double> c) {
  cblas_dgemm(CblasRowMajor, to_cblas(op_a), to_cblas(op_b), to_int(m), to_int(n), to_int(k), alpha,
              a.data, to_int(a.stride), b.data, to_int(b.stride), beta, c.data, to_int(c.stride));
}

void use_one_blas_thread() {
  if (openblas_set_num_threads != nullptr) openblas_set_num_threads(1);
}

}  // namespace gradsync::cpu
