#include <cmath>

#include "gradsync/backends/cuda/cuda_layer_kernels.hpp"
#include "gradsync/backends/cuda/kernels/rows.cuh"

// One block per row or column, unless noted otherwise. Sums use reduce_block, in an order that
// depends only on the shape.
namespace gradsync::cuda {
namespace {

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
