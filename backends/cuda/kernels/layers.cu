#include <cmath>
#include <limits>

#include "gradsync/backends/cuda/cuda_layer_kernels.hpp"
#include "gradsync/backends/cuda/kernels/launch.cuh"

// One block per row or column, unless noted otherwise. Sums use reduce_block, in an order that
// depends only on the shape.
namespace gradsync::cuda {
namespace {

/// This block's first row or column, and the stride: a grid has at most kMostBlocks blocks.
constexpr std::int64_t kMostBlocks = std::int64_t{1} << 20;
dim3 block_each(std::int64_t count) {
  return dim3(static_cast<unsigned>(std::clamp<std::int64_t>(count, 1, kMostBlocks)));
}

/// Sum of term(i) for i in [0, count), by all threads of a block.
template <typename Math, typename Term>
__device__ Math sum_over(std::int64_t count, Term term) {
  Math sum = 0;
  for (std::int64_t i = threadIdx.x; i < count; i += kThreads) sum += term(i);
  return reduce_block(sum, Plus{});
}
template <typename Math, typename Term>
__device__ Math largest_over(std::int64_t count, Term term) {
  Math largest = -std::numeric_limits<Math>::infinity();
  for (std::int64_t i = threadIdx.x; i < count; i += kThreads) largest = Larger{}(largest, term(i));
  return reduce_block(largest, Larger{});
}

template <typename T>
__global__ void fill_rows_kernel(T* out, const T* bias, std::int64_t rows, std::int64_t columns) {
  const std::int64_t count = rows * columns;
  for (std::int64_t i = first_element(); i < count; i += element_step()) out[i] = bias[i % columns];
}

template <typename T>
__global__ void sum_rows_kernel(T* out, const T* x, std::int64_t rows, std::int64_t columns) {
  for (std::int64_t c = blockIdx.x; c < columns; c += gridDim.x) {
    const T sum = sum_over<T>(rows, [=](std::int64_t r) { return x[r * columns + c]; });
    if (threadIdx.x == 0) out[c] = sum;
  }
}

template <typename T>
__global__ void gather_rows_kernel(T* out, const T* weight, const std::int64_t* ids,
                                   std::int64_t count, std::int64_t columns,
                                   std::int64_t table_rows, std::int64_t* bad_index) {
  const std::int64_t elements = count * columns;
  for (std::int64_t i = first_element(); i < elements; i += element_step()) {
    const std::int64_t id = ids[i / columns];
    const bool known = id >= 0 && id < table_rows;
    out[i] = known ? weight[id * columns + i % columns] : T{0};
    if (!known) *bad_index = 1 + i / columns;
  }
}

template <typename T>
__global__ void scatter_add_rows_kernel(T* out, const T* x, const std::int64_t* ids,
                                        std::int64_t count, std::int64_t columns,
                                        std::int64_t table_rows) {
  // A block owns a row of the table and scans the ids, kThreads at a time. Most ids belong to other
  // rows, so the threads first test them in parallel.
  __shared__ bool is_mine[kThreads];
  __shared__ bool any;
  for (std::int64_t row = blockIdx.x; row < table_rows; row += gridDim.x) {
    for (std::int64_t c = threadIdx.x; c < columns; c += kThreads) out[row * columns + c] = T{0};
    for (std::int64_t begin = 0; begin < count; begin += kThreads) {
      __syncthreads();
      if (threadIdx.x == 0) any = false;
      __syncthreads();
      const std::int64_t mine = begin + threadIdx.x;
      is_mine[threadIdx.x] = mine < count && ids[mine] == row;
      if (is_mine[threadIdx.x]) any = true;
      __syncthreads();
      if (!any) continue;
      for (int k = 0; k < kThreads; ++k) {
        if (!is_mine[k]) continue;
        for (std::int64_t c = threadIdx.x; c < columns; c += kThreads) {
          out[row * columns + c] += x[(begin + k) * columns + c];
        }
      }
    }
  }
}

template <typename T>
__global__ void softmax_rows_kernel(T* x, std::int64_t rows, std::int64_t columns) {
  for (std::int64_t r = blockIdx.x; r < rows; r += gridDim.x) {
    T* const row = x + r * columns;
    const T largest = largest_over<T>(columns, [=](std::int64_t c) { return row[c]; });
    const T sum = sum_over<T>(columns, [=](std::int64_t c) { return std::exp(row[c] - largest); });
    for (std::int64_t c = threadIdx.x; c < columns; c += kThreads) {
      row[c] = std::exp(row[c] - largest) / sum;
    }
  }
}

template <typename T>
__global__ void softmax_rows_backward_kernel(T* grad, const T* probabilities, T factor,
                                             std::int64_t rows, std::int64_t columns) {
  for (std::int64_t r = blockIdx.x; r < rows; r += gridDim.x) {
    T* const g = grad + r * columns;
    const T* const p = probabilities + r * columns;
    const T sum = sum_over<T>(columns, [=](std::int64_t c) { return g[c] * p[c]; });
    for (std::int64_t c = threadIdx.x; c < columns; c += kThreads) {
      g[c] = p[c] * (g[c] - sum) * factor;
    }
  }
}

template <typename T>
__global__ void layer_norm_kernel(T* out, T* mean, T* inverse_deviation, const T* x,
                                  const T* weight, const T* bias, T eps, std::int64_t rows,
                                  std::int64_t columns) {
  for (std::int64_t r = blockIdx.x; r < rows; r += gridDim.x) {
    const T* const row = x + r * columns;
    const T size = static_cast<T>(columns);
    const T center = sum_over<T>(columns, [=](std::int64_t c) { return row[c]; }) / size;
    const T variance =
        sum_over<T>(columns,
                    [=](std::int64_t c) { return (row[c] - center) * (row[c] - center); }) /
        size;
    const T inverse = 1 / std::sqrt(variance + eps);
    for (std::int64_t c = threadIdx.x; c < columns; c += kThreads) {
      out[r * columns + c] = (row[c] - center) * inverse * weight[c] + bias[c];
    }
    if (threadIdx.x == 0) {
      mean[r] = center;
      inverse_deviation[r] = inverse;
    }
  }
}

template <typename T>
__global__ void layer_norm_grad_x_kernel(T* grad_x, const T* grad_out, const T* x, const T* mean,
                                         const T* inverse_deviation, const T* weight,
                                         std::int64_t rows, std::int64_t columns) {
  for (std::int64_t r = blockIdx.x; r < rows; r += gridDim.x) {
    const T* const g = grad_out + r * columns;
    const T* const row = x + r * columns;
    const T center = mean[r], inverse = inverse_deviation[r];
    const T size = static_cast<T>(columns);
    const T sum = sum_over<T>(columns, [=](std::int64_t c) { return g[c] * weight[c]; });
    const T dot = sum_over<T>(
        columns, [=](std::int64_t c) { return g[c] * weight[c] * ((row[c] - center) * inverse); });
    for (std::int64_t c = threadIdx.x; c < columns; c += kThreads) {
      const T normalized = (row[c] - center) * inverse;
      grad_x[r * columns + c] =
          inverse * (g[c] * weight[c] - sum / size - normalized * (dot / size));
    }
  }
}

template <typename T>
__global__ void layer_norm_grad_weight_kernel(T* grad_weight, T* grad_bias, const T* grad_out,
                                              const T* x, const T* mean, const T* inverse_deviation,
                                              std::int64_t rows, std::int64_t columns) {
  for (std::int64_t c = blockIdx.x; c < columns; c += gridDim.x) {
    const T dot = sum_over<T>(rows, [=](std::int64_t r) {
      return grad_out[r * columns + c] * ((x[r * columns + c] - mean[r]) * inverse_deviation[r]);
    });
    const T sum = sum_over<T>(rows, [=](std::int64_t r) { return grad_out[r * columns + c]; });
    if (threadIdx.x == 0) {
      grad_weight[c] = dot;
      grad_bias[c] = sum;
    }
  }
}

template <typename T>
__global__ void batch_norm_kernel(T* out, T* mean, T* inverse_deviation, T* running_mean,
                                  T* running_variance, const T* x, const T* weight, const T* bias,
                                  T momentum, T eps, std::int64_t rows, std::int64_t columns) {
  for (std::int64_t c = blockIdx.x; c < columns; c += gridDim.x) {
    const T size = static_cast<T>(rows);
    const T center = sum_over<T>(rows, [=](std::int64_t r) { return x[r * columns + c]; }) / size;
    const T squares = sum_over<T>(rows, [=](std::int64_t r) {
      const T distance = x[r * columns + c] - center;
      return distance * distance;
    });
    const T inverse = 1 / std::sqrt(squares / size + eps);
    for (std::int64_t r = threadIdx.x; r < rows; r += kThreads) {
      out[r * columns + c] = (x[r * columns + c] - center) * inverse * weight[c] + bias[c];
    }
    if (threadIdx.x == 0) {
      mean[c] = center;
      inverse_deviation[c] = inverse;
      running_mean[c] = (1 - momentum) * running_mean[c] + momentum * center;
      running_variance[c] =
          (1 - momentum) * running_variance[c] + momentum * (squares / (size - 1));
    }
  }
}

template <typename T>
__global__ void batch_norm_backward_kernel(T* grad_x, T* grad_weight, T* grad_bias,
                                           const T* grad_out, const T* x, const T* mean,
                                           const T* inverse_deviation, const T* weight,
                                           std::int64_t rows, std::int64_t columns) {
  for (std::int64_t c = blockIdx.x; c < columns; c += gridDim.x) {
    const T center = mean[c], inverse = inverse_deviation[c];
    const T size = static_cast<T>(rows);
    const T sum = sum_over<T>(rows, [=](std::int64_t r) { return grad_out[r * columns + c]; });
    const T dot = sum_over<T>(rows, [=](std::int64_t r) {
      return grad_out[r * columns + c] * ((x[r * columns + c] - center) * inverse);
    });
    if (threadIdx.x == 0) {
      grad_weight[c] = dot;
      grad_bias[c] = sum;
    }
    if (grad_x == nullptr) continue;
    for (std::int64_t r = threadIdx.x; r < rows; r += kThreads) {
      const T normalized = (x[r * columns + c] - center) * inverse;
      grad_x[r * columns + c] =
          weight[c] * inverse *
          (grad_out[r * columns + c] - sum / size - normalized * (dot / size));
    }
  }
}

template <typename T>
__global__ void relu_kernel(T* out, const T* x, std::int64_t count) {
  for (std::int64_t i = first_element(); i < count; i += element_step()) {
    out[i] = x[i] < T{0} ? T{0} : x[i];  // NaN stays
  }
}

template <typename T>
__global__ void relu_backward_kernel(T* grad_x, const T* grad_out, const T* out,
                                     std::int64_t count) {
  for (std::int64_t i = first_element(); i < count; i += element_step()) {
    grad_x[i] = out[i] > T{0} ? grad_out[i] : T{0};
  }
}

template <typename T>
__global__ void add_tensors_kernel(T* out, const T* a, const T* b, std::int64_t count) {
  for (std::int64_t i = first_element(); i < count; i += element_step()) out[i] = a[i] + b[i];
}

template <typename T>
__global__ void sum_kernel(T* out, const T* x, std::int64_t count) {
  const T total = sum_over<T>(count, [=](std::int64_t i) { return x[i]; });
  if (threadIdx.x == 0) *out = total;
}

template <typename T>
__global__ void fill_from_kernel(T* x, const T* value, std::int64_t count) {
  for (std::int64_t i = first_element(); i < count; i += element_step()) x[i] = *value;
}

template <typename T>
__global__ void log_sum_exp_kernel(T* out, const T* x, std::int64_t rows, std::int64_t columns) {
  for (std::int64_t r = blockIdx.x; r < rows; r += gridDim.x) {
    const T* const row = x + r * columns;
    const T largest = largest_over<T>(columns, [=](std::int64_t c) { return row[c]; });
    const T sum = sum_over<T>(columns, [=](std::int64_t c) { return std::exp(row[c] - largest); });
    if (threadIdx.x == 0) out[r] = largest + std::log(sum);
  }
}

/// One block for all rows.
template <typename T>
__global__ void cross_entropy_mean_kernel(T* loss, const T* log_normalizer, const T* logits,
                                          const std::int64_t* targets, std::int64_t rows,
                                          std::int64_t columns, std::int64_t* bad_index) {
  const double sum = sum_over<double>(rows, [=](std::int64_t r) {
    const std::int64_t target = targets[r];
    if (target < 0 || target >= columns) {
      *bad_index = 1 + r;
      return 0.0;
    }
    return static_cast<double>(log_normalizer[r] - logits[r * columns + target]);
  });
  if (threadIdx.x == 0) *loss = static_cast<T>(sum / static_cast<double>(rows));
}

template <typename T>
__global__ void cross_entropy_backward_kernel(T* grad, const T* grad_loss, const T* logits,
                                              const T* log_normalizer, const std::int64_t* targets,
                                              std::int64_t rows, std::int64_t columns) {
  const T factor = *grad_loss / static_cast<T>(rows);
  const std::int64_t count = rows * columns;
  for (std::int64_t i = first_element(); i < count; i += element_step()) {
    const std::int64_t r = i / columns;
    const T probability = std::exp(logits[i] - log_normalizer[r]);
    grad[i] = (probability - (i % columns == targets[r] ? T{1} : T{0})) * factor;
  }
}

template <typename Function>
void with_type(DType dtype, Function&& function) {
  switch (dtype) {
    case DType::kFloat32:
      return function(float{});
    case DType::kFloat64:
      return function(double{});
    default:
      throw Error(ErrorCode::kInternal,
                  "the layers' kernels compute in float32 and float64, not in " +
                      std::string(to_string(dtype)));
  }
}

}  // namespace

void fill_rows(CudaStream stream, DType dtype, void* out, const void* bias, std::int64_t rows,
               std::int64_t columns) {
  with_type(dtype, [&](auto tag) {
    using T = decltype(tag);
    launch(fill_rows_kernel<T>, blocks_for(rows * columns), stream, static_cast<T*>(out),
           static_cast<const T*>(bias), rows, columns);
  });
}

void sum_rows(CudaStream stream, DType dtype, void* out, const void* x, std::int64_t rows,
              std::int64_t columns) {
  with_type(dtype, [&](auto tag) {
    using T = decltype(tag);
    launch(sum_rows_kernel<T>, block_each(columns), stream, static_cast<T*>(out),
           static_cast<const T*>(x), rows, columns);
  });
}

void gather_rows(CudaStream stream, DType dtype, void* out, const void* weight,
                 const std::int64_t* ids, std::int64_t count, std::int64_t columns,
                 std::int64_t table_rows, std::int64_t* bad_index) {
  with_type(dtype, [&](auto tag) {
    using T = decltype(tag);
    launch(gather_rows_kernel<T>, blocks_for(count * columns), stream, static_cast<T*>(out),
           static_cast<const T*>(weight), ids, count, columns, table_rows, bad_index);
  });
}

void scatter_add_rows(CudaStream stream, DType dtype, void* out, const void* x,
                      const std::int64_t* ids, std::int64_t count, std::int64_t columns,
                      std::int64_t table_rows) {
  with_type(dtype, [&](auto tag) {
    using T = decltype(tag);
    launch(scatter_add_rows_kernel<T>, block_each(table_rows), stream, static_cast<T*>(out),
           static_cast<const T*>(x), ids, count, columns, table_rows);
  });
}

void softmax_rows(CudaStream stream, DType dtype, void* x, std::int64_t rows,
                  std::int64_t columns) {
  with_type(dtype, [&](auto tag) {
    using T = decltype(tag);
    launch(softmax_rows_kernel<T>, block_each(rows), stream, static_cast<T*>(x), rows, columns);
  });
}

void softmax_rows_backward(CudaStream stream, DType dtype, void* grad, const void* probabilities,
                           double factor, std::int64_t rows, std::int64_t columns) {
  with_type(dtype, [&](auto tag) {
    using T = decltype(tag);
    launch(softmax_rows_backward_kernel<T>, block_each(rows), stream, static_cast<T*>(grad),
           static_cast<const T*>(probabilities), static_cast<T>(factor), rows, columns);
  });
}

void layer_norm(CudaStream stream, DType dtype, void* out, void* mean, void* inverse_deviation,
                const void* x, const void* weight, const void* bias, double eps, std::int64_t rows,
                std::int64_t columns) {
  with_type(dtype, [&](auto tag) {
    using T = decltype(tag);
    launch(layer_norm_kernel<T>, block_each(rows), stream, static_cast<T*>(out),
           static_cast<T*>(mean), static_cast<T*>(inverse_deviation), static_cast<const T*>(x),
           static_cast<const T*>(weight), static_cast<const T*>(bias), static_cast<T>(eps), rows,
           columns);
  });
}

void layer_norm_backward(CudaStream stream, DType dtype, void* grad_x, void* grad_weight,
                         void* grad_bias, const void* grad_out, const void* x, const void* mean,
                         const void* inverse_deviation, const void* weight, std::int64_t rows,
                         std::int64_t columns) {
  with_type(dtype, [&](auto tag) {
    using T = decltype(tag);
    const auto* const g = static_cast<const T*>(grad_out);
    const auto* const in = static_cast<const T*>(x);
    const auto* const center = static_cast<const T*>(mean);
    const auto* const inverse = static_cast<const T*>(inverse_deviation);
    if (grad_weight != nullptr) {
      launch(layer_norm_grad_weight_kernel<T>, block_each(columns), stream,
             static_cast<T*>(grad_weight), static_cast<T*>(grad_bias), g, in, center, inverse, rows,
             columns);
    }
    if (grad_x != nullptr) {
      launch(layer_norm_grad_x_kernel<T>, block_each(rows), stream, static_cast<T*>(grad_x), g, in,
             center, inverse, static_cast<const T*>(weight), rows, columns);
    }
  });
}

void batch_norm(CudaStream stream, DType dtype, void* out, void* mean, void* inverse_deviation,
                void* running_mean, void* running_variance, const void* x, const void* weight,
                const void* bias, double momentum, double eps, std::int64_t rows,
                std::int64_t columns) {
  with_type(dtype, [&](auto tag) {
    using T = decltype(tag);
    launch(batch_norm_kernel<T>, block_each(columns), stream, static_cast<T*>(out),
           static_cast<T*>(mean), static_cast<T*>(inverse_deviation), static_cast<T*>(running_mean),
           static_cast<T*>(running_variance), static_cast<const T*>(x),
           static_cast<const T*>(weight), static_cast<const T*>(bias), static_cast<T>(momentum),
           static_cast<T>(eps), rows, columns);
  });
}

void batch_norm_backward(CudaStream stream, DType dtype, void* grad_x, void* grad_weight,
                         void* grad_bias, const void* grad_out, const void* x, const void* mean,
                         const void* inverse_deviation, const void* weight, std::int64_t rows,
                         std::int64_t columns) {
  with_type(dtype, [&](auto tag) {
    using T = decltype(tag);
    launch(batch_norm_backward_kernel<T>, block_each(columns), stream, static_cast<T*>(grad_x),
           static_cast<T*>(grad_weight), static_cast<T*>(grad_bias),
           static_cast<const T*>(grad_out), static_cast<const T*>(x), static_cast<const T*>(mean),
           static_cast<const T*>(inverse_deviation), static_cast<const T*>(weight), rows, columns);
  });
}

void relu(CudaStream stream, DType dtype, void* out, const void* x, std::int64_t count) {
  with_type(dtype, [&](auto tag) {
    using T = decltype(tag);
    launch(relu_kernel<T>, blocks_for(count), stream, static_cast<T*>(out),
           static_cast<const T*>(x), count);
  });
}

void relu_backward(CudaStream stream, DType dtype, void* grad_x, const void* grad_out,
                   const void* out, std::int64_t count) {
  with_type(dtype, [&](auto tag) {
    using T = decltype(tag);
    launch(relu_backward_kernel<T>, blocks_for(count), stream, static_cast<T*>(grad_x),
           static_cast<const T*>(grad_out), static_cast<const T*>(out), count);
  });
}

void add_tensors(CudaStream stream, DType dtype, void* out, const void* a, const void* b,
                 std::int64_t count) {
  with_type(dtype, [&](auto tag) {
    using T = decltype(tag);
    launch(add_tensors_kernel<T>, blocks_for(count), stream, static_cast<T*>(out),
           static_cast<const T*>(a), static_cast<const T*>(b), count);
  });
}

void sum(CudaStream stream, DType dtype, void* out, const void* x, std::int64_t count) {
  with_type(dtype, [&](auto tag) {
    using T = decltype(tag);
    launch(sum_kernel<T>, dim3(1), stream, static_cast<T*>(out), static_cast<const T*>(x), count);
  });
}

void fill_from(CudaStream stream, DType dtype, void* x, const void* value, std::int64_t count) {
  with_type(dtype, [&](auto tag) {
    using T = decltype(tag);
    launch(fill_from_kernel<T>, blocks_for(count), stream, static_cast<T*>(x),
           static_cast<const T*>(value), count);
  });
}

void cross_entropy(CudaStream stream, DType dtype, void* loss, void* log_normalizer,
                   const void* logits, const std::int64_t* targets, std::int64_t rows,
                   std::int64_t columns, std::int64_t* bad_index) {
  with_type(dtype, [&](auto tag) {
    using T = decltype(tag);
    launch(log_sum_exp_kernel<T>, block_each(rows), stream, static_cast<T*>(log_normalizer),
           static_cast<const T*>(logits), rows, columns);
    launch(cross_entropy_mean_kernel<T>, dim3(1), stream, static_cast<T*>(loss),
           static_cast<const T*>(log_normalizer), static_cast<const T*>(logits), targets, rows,
           columns, bad_index);
  });
}

void cross_entropy_backward(CudaStream stream, DType dtype, void* grad, const void* grad_loss,
                            const void* logits, const void* log_normalizer,
                            const std::int64_t* targets, std::int64_t rows, std::int64_t columns) {
  with_type(dtype, [&](auto tag) {
    using T = decltype(tag);
    launch(cross_entropy_backward_kernel<T>, blocks_for(rows * columns), stream,
           static_cast<T*>(grad), static_cast<const T*>(grad_loss), static_cast<const T*>(logits),
           static_cast<const T*>(log_normalizer), targets, rows, columns);
  });
}

}  // namespace gradsync::cuda
