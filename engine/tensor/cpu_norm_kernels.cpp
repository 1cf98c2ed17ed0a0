// Layer norm and batch norm.
#include <algorithm>
#include <cmath>

#include "gradsync/tensor/cpu_layer_kernels.hpp"
#include "gradsync/tensor/cpu_sums.hpp"
#include "gradsync/tensor/simd.hpp"

namespace gradsync::cpu {
namespace {

struct LayerNorm {
  template <typename T>
  GRADSYNC_KERNEL void operator()(T* __restrict out, T* __restrict mean,
                                  T* __restrict inverse_deviation, const T* __restrict x,
                                  const T* __restrict weight, const T* __restrict bias, T eps,
                                  std::int64_t rows, std::int64_t columns) const {
    const auto count = static_cast<T>(columns);
    for (std::int64_t row = 0; row < rows; ++row, x += columns, out += columns) {
      const T m = lane_sum<T>(columns, [&](std::int64_t i) { return x[i]; }) / count;
      const T variance = lane_sum<T>(columns,
                                     [&](std::int64_t i) {
                                       const T centered = x[i] - m;
                                       return centered * centered;
                                     }) /
                         count;
      const T r = 1 / std::sqrt(variance + eps);
      for (std::int64_t i = 0; i < columns; ++i) out[i] = (x[i] - m) * r * weight[i] + bias[i];
      mean[row] = m;
      inverse_deviation[row] = r;
    }
  }
};

/// With xhat = (x - mean) r and g = grad_out weight:
/// grad_x = r (g - mean(g) - xhat mean(g xhat)).
struct LayerNormBackward {
  template <typename T>
  GRADSYNC_KERNEL void operator()(T* __restrict grad_x, T* __restrict grad_weight,
                                  T* __restrict grad_bias, const T* __restrict grad_out,
                                  const T* __restrict x, const T* __restrict mean,
                                  const T* __restrict inverse_deviation, const T* __restrict weight,
                                  std::int64_t rows, std::int64_t columns) const {
    const auto count = static_cast<T>(columns);
    if (grad_weight != nullptr) {
      std::fill_n(grad_weight, columns, T{0});
      std::fill_n(grad_bias, columns, T{0});
    }
    for (std::int64_t row = 0; row < rows; ++row, x += columns, grad_out += columns) {
      const T m = mean[row], r = inverse_deviation[row];
      if (grad_weight != nullptr) {
        for (std::int64_t i = 0; i < columns; ++i) {
          grad_weight[i] += grad_out[i] * ((x[i] - m) * r);
          grad_bias[i] += grad_out[i];
        }
      }
      if (grad_x == nullptr) continue;
      const T mean_g =
          lane_sum<T>(columns, [&](std::int64_t i) { return grad_out[i] * weight[i]; }) / count;
      const T mean_g_xhat =
          lane_sum<T>(columns,
                      [&](std::int64_t i) { return grad_out[i] * weight[i] * ((x[i] - m) * r); }) /
          count;
      for (std::int64_t i = 0; i < columns; ++i) {
        const T xhat = (x[i] - m) * r;
        grad_x[i] = r * (grad_out[i] * weight[i] - mean_g - xhat * mean_g_xhat);
      }
      grad_x += columns;
    }
  }
};

struct BatchNorm {
  template <typename T>
  GRADSYNC_KERNEL void operator()(T* __restrict out, T* __restrict mean,
                                  T* __restrict inverse_deviation, T* __restrict running_mean,
                                  T* __restrict running_variance, const T* __restrict x,
                                  const T* __restrict weight, const T* __restrict bias, T momentum,
                                  T eps, std::int64_t rows, std::int64_t columns) const {
    const auto count = static_cast<T>(rows);
    SumRows{}(mean, x, rows, columns);
    for (std::int64_t i = 0; i < columns; ++i) mean[i] /= count;
    T* const squares = inverse_deviation;  // until the sums are complete
    std::fill_n(squares, columns, T{0});
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t i = 0; i < columns; ++i) {
        const T centered = x[row * columns + i] - mean[i];
        squares[i] += centered * centered;
      }
    }
    for (std::int64_t i = 0; i < columns; ++i) {
      const T unbiased = squares[i] / (count - 1);
      running_mean[i] += momentum * (mean[i] - running_mean[i]);
      running_variance[i] += momentum * (unbiased - running_variance[i]);
      inverse_deviation[i] = 1 / std::sqrt(squares[i] / count + eps);
    }
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t i = 0; i < columns; ++i) {
        const std::int64_t at = row * columns + i;
        out[at] = (x[at] - mean[i]) * inverse_deviation[i] * weight[i] + bias[i];
      }
    }
  }
};

/// As for layer norm, with means over the rows: mean(g) = weight grad_bias / rows and
/// mean(g xhat) = weight grad_weight / rows.
struct BatchNormBackward {
  template <typename T>
  GRADSYNC_KERNEL void operator()(T* __restrict grad_x, T* __restrict grad_weight,
                                  T* __restrict grad_bias, const T* __restrict grad_out,
                                  const T* __restrict x, const T* __restrict mean,
                                  const T* __restrict inverse_deviation, const T* __restrict weight,
                                  std::int64_t rows, std::int64_t columns) const {
    const auto count = static_cast<T>(rows);
    std::fill_n(grad_weight, columns, T{0});
    std::fill_n(grad_bias, columns, T{0});
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t i = 0; i < columns; ++i) {
        const std::int64_t at = row * columns + i;
        grad_weight[i] += grad_out[at] * ((x[at] - mean[i]) * inverse_deviation[i]);
        grad_bias[i] += grad_out[at];
      }
    }
    if (grad_x == nullptr) return;
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t i = 0; i < columns; ++i) {
        const std::int64_t at = row * columns + i;
        const T xhat = (x[at] - mean[i]) * inverse_deviation[i];
        const T means = (grad_bias[i] + xhat * grad_weight[i]) / count;
        grad_x[at] = weight[i] * inverse_deviation[i] * (grad_out[at] - means);
      }
    }
  }
};

}  // namespace

template <typename T>
void layer_norm(T* out, T* mean, T* inverse_deviation, const T* x, const T* weight, const T* bias,
                T eps, std::int64_t rows, std::int64_t columns) {
  simd::dispatch(LayerNorm{}, out, mean, inverse_deviation, x, weight, bias, eps, rows, columns);
}

template <typename T>
void layer_norm_backward(T* grad_x, T* grad_weight, T* grad_bias, const T* grad_out, const T* x,
                         const T* mean, const T* inverse_deviation, const T* weight,
                         std::int64_t rows, std::int64_t columns) {
  simd::dispatch(LayerNormBackward{}, grad_x, grad_weight, grad_bias, grad_out, x, mean,
                 inverse_deviation, weight, rows, columns);
}

template <typename T>
void batch_norm(T* out, T* mean, T* inverse_deviation, T* running_mean, T* running_variance,
                const T* x, const T* weight, const T* bias, T momentum, T eps, std::int64_t rows,
                std::int64_t columns) {
  simd::dispatch(BatchNorm{}, out, mean, inverse_deviation, running_mean, running_variance, x,
                 weight, bias, momentum, eps, rows, columns);
}

template <typename T>
void batch_norm_backward(T* grad_x, T* grad_weight, T* grad_bias, const T* grad_out, const T* x,
                         const T* mean, const T* inverse_deviation, const T* weight,
                         std::int64_t rows, std::int64_t columns) {
  simd::dispatch(BatchNormBackward{}, grad_x, grad_weight, grad_bias, grad_out, x, mean,
                 inverse_deviation, weight, rows, columns);
}

#define GRADSYNC_INSTANTIATE(T)                                                                   \
  template void layer_norm(T*, T*, T*, const T*, const T*, const T*, T, std::int64_t,             \
                           std::int64_t);                                                         \
  template void layer_norm_backward(T*, T*, T*, const T*, const T*, const T*, const T*, const T*, \
                                    std::int64_t, std::int64_t);                                  \
  template void batch_norm(T*, T*, T*, T*, T*, const T*, const T*, const T*, T, T, std::int64_t,  \
                           std::int64_t);                                                         \
  template void batch_norm_backward(T*, T*, T*, const T*, const T*, const T*, const T*, const T*, \
                                    std::int64_t, std::int64_t);
GRADSYNC_INSTANTIATE(float)
GRADSYNC_INSTANTIATE(double)
#undef GRADSYNC_INSTANTIATE

}  // namespace gradsync::cpu
