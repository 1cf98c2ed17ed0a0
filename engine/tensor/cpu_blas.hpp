#pragma once

#include <cstdint>

namespace gradsync::cpu {

/// Whether an operand of a matrix product is used as stored or transposed.
enum class Op { kNone, kTranspose };

/// A row-major matrix in memory; `stride` elements lie between the starts of two rows.
template <typename T>
struct Matrix {
  T* data;
  std::int64_t stride;
};

/// c[m, n] = alpha * op(a)[m, k] op(b)[k, n] + beta * c, by BLAS on one thread: how OpenBLAS
/// divides a product over threads would change the bits of the result with the number of cores.
void gemm(Op op_a, Op op_b, std::int64_t m, std::int64_t n, std::int64_t k, float alpha,
          Matrix<const float> a, Matrix<const float> b, float beta, Matrix<float> c);
void gemm(Op op_a, Op op_b, std::int64_t m, std::int64_t n, std::int64_t k, double alpha,
          Matrix<const double> a, Matrix<const double> b, double beta, Matrix<double> c);

/// Makes BLAS use one thread in this process from now on.
void use_one_blas_thread();

}  // namespace gradsync::cpu
