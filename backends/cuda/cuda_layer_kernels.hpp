#pragma once

#include <cstdint>

#include "gradsync/backends/cuda/cuda_api.hpp"
#include "gradsync/tensor/dtype.hpp"

/// Launchers of the layer kernels (kernels/layers.cu), the CUDA counterpart of
/// engine/tensor/cpu_layer_kernels.hpp: float32 and float64, over `rows` rows of `columns`
/// contiguous elements, asynchronous, in stream order. A null pointer means that the gradient is
/// not needed. Sums over rows or columns have a fixed order.
namespace gradsync::cuda {

/// out[row] = bias
void fill_rows(CudaStream stream, DType dtype, void* out, const void* bias, std::int64_t rows,
               std::int64_t columns);
/// out[column] = sum over rows
void sum_rows(CudaStream stream, DType dtype, void* out, const void* x, std::int64_t rows,
              std::int64_t columns);

/// out[i] = weight[ids[i]]. An id outside [0, table_rows) yields zeros and sets *bad_index, in
/// memory shared by host and device, to 1 + its position (any one of them if there are several).
void gather_rows(CudaStream stream, DType dtype, void* out, const void* weight,
                 const std::int64_t* ids, std::int64_t count, std::int64_t columns,
                 std::int64_t table_rows, std::int64_t* bad_index);
/// out[row] = sum of the x[i] with ids[i] == row, in the order of i.
void scatter_add_rows(CudaStream stream, DType dtype, void* out, const void* x,
                      const std::int64_t* ids, std::int64_t count, std::int64_t columns,
                      std::int64_t table_rows);

/// Each row becomes exp(x - max) / sum(exp(x - max)).
void softmax_rows(CudaStream stream, DType dtype, void* x, std::int64_t rows, std::int64_t columns);
/// grad[row] = probabilities * (grad - sum(grad * probabilities)) * factor, in place
void softmax_rows_backward(CudaStream stream, DType dtype, void* grad, const void* probabilities,
                           double factor, std::int64_t rows, std::int64_t columns);

void layer_norm(CudaStream stream, DType dtype, void* out, void* mean, void* inverse_deviation,
                const void* x, const void* weight, const void* bias, double eps, std::int64_t rows,
                std::int64_t columns);
void layer_norm_backward(CudaStream stream, DType dtype, void* grad_x, void* grad_weight,
                         void* grad_bias, const void* grad_out, const void* x, const void* mean,
                         const void* inverse_deviation, const void* weight, std::int64_t rows,
                         std::int64_t columns);

/// Reduces over rows, per column; also updates the running moments.
void batch_norm(CudaStream stream, DType dtype, void* out, void* mean, void* inverse_deviation,
                void* running_mean, void* running_variance, const void* x, const void* weight,
                const void* bias, double momentum, double eps, std::int64_t rows,
                std::int64_t columns);
/// grad_weight and grad_bias are always computed, because grad_x depends on them.
void batch_norm_backward(CudaStream stream, DType dtype, void* grad_x, void* grad_weight,
                         void* grad_bias, const void* grad_out, const void* x, const void* mean,
                         const void* inverse_deviation, const void* weight, std::int64_t rows,
                         std::int64_t columns);

void relu(CudaStream stream, DType dtype, void* out, const void* x, std::int64_t count);
void relu_backward(CudaStream stream, DType dtype, void* grad_x, const void* grad_out,
                   const void* out, std::int64_t count);
void add_tensors(CudaStream stream, DType dtype, void* out, const void* a, const void* b,
                 std::int64_t count);
/// *out = sum of x
void sum(CudaStream stream, DType dtype, void* out, const void* x, std::int64_t count);
/// x[i] = *value
void fill_from(CudaStream stream, DType dtype, void* x, const void* value, std::int64_t count);

/// log_normalizer[row] = log(sum(exp(row))); *loss = mean over rows of log_normalizer - the
/// target's logit. A target outside [0, columns) contributes nothing and sets *bad_index as in
/// gather_rows.
void cross_entropy(CudaStream stream, DType dtype, void* loss, void* log_normalizer,
                   const void* logits, const std::int64_t* targets, std::int64_t rows,
                   std::int64_t columns, std::int64_t* bad_index);
/// grad[row] = (exp(logits - log_normalizer) - [column == target]) * *grad_loss / rows
void cross_entropy_backward(CudaStream stream, DType dtype, void* grad, const void* grad_loss,
                            const void* logits, const void* log_normalizer,
                            const std::int64_t* targets, std::int64_t rows, std::int64_t columns);

}  // namespace gradsync::cuda
