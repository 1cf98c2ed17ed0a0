#pragma once

#include <cstdint>

#include "gradsync/tensor/cpu_blas.hpp"

namespace gradsync::cpu {

/// The loops behind the CPU's Kernels, for T = float and double, over `rows` rows of `columns`
/// contiguous elements. A null pointer means that the gradient is not needed. The float exponential
/// is implemented here instead of by the C library: within 1 ulp and with the same bits everywhere.

/// out[row] = bias
template <typename T>
void fill_rows(T* out, const T* bias, std::int64_t rows, std::int64_t columns);
/// out[column] = sum over rows, in row order
template <typename T>
void sum_rows(T* out, const T* x, std::int64_t rows, std::int64_t columns);

/// out[ids[i]] += x[i] for each i, in order
template <typename T>
void scatter_add_rows(T* out, const T* x, const std::int64_t* ids, std::int64_t rows,
                      std::int64_t columns);

/// Each row becomes exp(x - max) / sum(exp(x - max)).
template <typename T>
void softmax_rows(T* x, std::int64_t rows, std::int64_t columns);
/// grad[row] = probabilities * (grad - sum(grad * probabilities)) * factor, in place
template <typename T>
void softmax_rows_backward(T* grad, const T* probabilities, T factor, std::int64_t rows,
                           std::int64_t columns);

template <typename T>
void layer_norm(T* out, T* mean, T* inverse_deviation, const T* x, const T* weight, const T* bias,
                T eps, std::int64_t rows, std::int64_t columns);
/// grad_weight and grad_bias (both or neither) and grad_x are overwritten.
template <typename T>
void layer_norm_backward(T* grad_x, T* grad_weight, T* grad_bias, const T* grad_out, const T* x,
                         const T* mean, const T* inverse_deviation, const T* weight,
                         std::int64_t rows, std::int64_t columns);

/// Reduces over rows, per column; also updates the running moments.
template <typename T>
void batch_norm(T* out, T* mean, T* inverse_deviation, T* running_mean, T* running_variance,
                const T* x, const T* weight, const T* bias, T momentum, T eps, std::int64_t rows,
                std::int64_t columns);
template <typename T>
void batch_norm_backward(T* grad_x, T* grad_weight, T* grad_bias, const T* grad_out, const T* x,
                         const T* mean, const T* inverse_deviation, const T* weight,
                         std::int64_t rows, std::int64_t columns);

template <typename T>
void relu(T* out, const T* x, std::int64_t count);
template <typename T>
void relu_backward(T* grad_x, const T* grad_out, const T* out, std::int64_t count);
template <typename T>
void add_tensors(T* out, const T* a, const T* b, std::int64_t count);

template <typename T>
T sum(const T* x, std::int64_t count);

/// log(sum(exp(row))) of each row
template <typename T>
void log_sum_exp_rows(T* out, const T* x, std::int64_t rows, std::int64_t columns);
/// grad[row] = (exp(logits - log_normalizer) - [column == target]) * factor
template <typename T>
void cross_entropy_rows_backward(T* grad, const T* logits, const T* log_normalizer,
                                 const std::int64_t* targets, T factor, std::int64_t rows,
                                 std::int64_t columns);

}  // namespace gradsync::cpu
