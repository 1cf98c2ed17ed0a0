#include <cmath>

#include "gradsync/backends/cuda/cuda_layer_kernels.hpp"
#include "gradsync/backends/cuda/kernels/rows.cuh"

// One block per row or column, unless noted otherwise. Sums use reduce_block, in an order that
// depends only on the shape.
namespace gradsync::cuda {
namespace {

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

}  // namespace

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

}  // namespace gradsync::cuda
