#pragma once

#include <cstdint>

namespace gradsync::cpu {

/// Whether an operand of a matrix product is used as stored or transposed.
enum class Op { kNone, kTranspose };

/// A row-major matrix in memory; `stride` is the number of elements between the starts of two rows.
template <typename T>
struct Matrix {
  T* data;
  std::int64_t stride;
};

/// c[m, n] = alpha * op(a)[m, k] op(b)[k, n] + beta * c, by BLAS on one thread. With more threads,
/// the way OpenBLAS splits a product would make the bits of the result depend on the number of
/// cores.
void gemm(Op op_a, Op op_b, std::int64_t m, std::int64_t n, std::int64_t k, float alpha,
          Matrix<const float> a, Matrix<const float> b, float beta, Matrix<float> c);
void gemm(Op op_a, Op op_b, std::int64_t m, std::int64_t n, std::int64_t k, double alpha,
          Matrix<const double> a, Matrix<const double> b, double beta, Matrix<double> c);

/// Limits BLAS to one thread for the rest of the process.
void use_one_blas_thread();

}  // namespace gradsync::cpu
