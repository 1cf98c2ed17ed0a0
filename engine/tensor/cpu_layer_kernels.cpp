#include "gradsync/tensor/cpu_layer_kernels.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>

#include "gradsync/tensor/cpu_sums.hpp"
#include "gradsync/tensor/simd.hpp"

namespace gradsync::cpu {
namespace {

/// exp(x): x = n ln 2 + r with |r| <= ln(2)/2, a polynomial for exp(r), and 2^n assembled from
/// bits. The result is 0 below -87 and infinity above 88.7.
GRADSYNC_KERNEL float exponential(float x) {
  constexpr float kLog2E = 0x1.715476p+0f;
  constexpr float kLn2High = 0x1.62e43p-1f, kLn2Low = -0x1.05c61p-29f;  // their sum is ln 2
  constexpr float kRound = 0x1.8p+23f;  // adding it leaves the nearest integer in the low bits
  const float shifted = std::fma(x, kLog2E, kRound);
  const float n = shifted - kRound;
  const float r = std::fma(-n, kLn2Low, std::fma(-n, kLn2High, x));
  // exp(r) = 1 + r + r^2 q(r); q by Chebyshev interpolation, relative error below 1e-8.
  float q = 0x1.630652p-10f;
  q = std::fma(q, r, 0x1.120b6ep-7f);
  q = std::fma(q, r, 0x1.55612ap-5f);
  q = std::fma(q, r, 0x1.5554dcp-3f);
  q = std::fma(q, r, 0x1.fffff4p-2f);
  const float power = std::fma(q * r, r, r) + 1.0f;
  const std::uint32_t exponent = std::bit_cast<std::uint32_t>(shifted) << 23;
  const float scale = std::bit_cast<float>(exponent + 0x3f800000u);
  return x < -87.0f ? 0.0f : (x > 88.7f ? HUGE_VALF : power * scale);
}
GRADSYNC_KERNEL double exponential(double x) {
  return std::exp(x);
}

template <typename T>
GRADSYNC_KERNEL T largest(const T* x, std::int64_t count) {
  T lanes[kLanes];
  std::fill_n(lanes, kLanes, x[0]);
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    GRADSYNC_LANE_LOOP
    for (std::int64_t lane = 0; lane < kLanes; ++lane) {
      lanes[lane] = x[i + lane] > lanes[lane] ? x[i + lane] : lanes[lane];
    }
  }
  T result = lanes[0];
  for (std::int64_t lane = 1; lane < kLanes; ++lane) result = std::max(result, lanes[lane]);
  for (; i < count; ++i) result = std::max(result, x[i]);
  return result;
}

struct ScatterAddRows {
  template <typename T>
  GRADSYNC_KERNEL void operator()(T* __restrict out, const T* __restrict x,
                                  const std::int64_t* __restrict ids, std::int64_t rows,
                                  std::int64_t columns) const {
    for (std::int64_t row = 0; row < rows; ++row, x += columns) {
      T* __restrict target = out + ids[row] * columns;
      for (std::int64_t i = 0; i < columns; ++i) target[i] += x[i];
    }
  }
};

struct SoftmaxRows {
  template <typename T>
  GRADSYNC_KERNEL void operator()(T* x, std::int64_t rows, std::int64_t columns) const {
    for (std::int64_t row = 0; row < rows; ++row, x += columns) {
      const T max = largest(x, columns);
      for (std::int64_t i = 0; i < columns; ++i) x[i] = exponential(x[i] - max);
      const T* values = x;
      const T factor = 1 / lane_sum<T>(columns, [values](std::int64_t i) { return values[i]; });
      for (std::int64_t i = 0; i < columns; ++i) x[i] *= factor;
    }
  }
};

struct SoftmaxRowsBackward {
  template <typename T>
  GRADSYNC_KERNEL void operator()(T* __restrict grad, const T* __restrict probabilities, T factor,
                                  std::int64_t rows, std::int64_t columns) const {
    for (std::int64_t row = 0; row < rows; ++row, grad += columns, probabilities += columns) {
      const T dot =
          lane_sum<T>(columns, [&](std::int64_t i) { return grad[i] * probabilities[i]; });
      for (std::int64_t i = 0; i < columns; ++i) {
        grad[i] = probabilities[i] * (grad[i] - dot) * factor;
      }
    }
  }
};

/// The in-place loops are separate: the compiler's overlap check would select the scalar version of
/// the general ones.
struct Relu {
  template <typename T>
  GRADSYNC_KERNEL void operator()(T* __restrict out, const T* __restrict x,
                                  std::int64_t count) const {
    for (std::int64_t i = 0; i < count; ++i) out[i] = x[i] < 0 ? T{0} : x[i];  // NaN stays
  }
};

struct ReluInPlace {
  template <typename T>
  GRADSYNC_KERNEL void operator()(T* x, std::int64_t count) const {
    for (std::int64_t i = 0; i < count; ++i) x[i] = x[i] < 0 ? T{0} : x[i];
  }
};

struct ReluBackward {
  template <typename T>
  GRADSYNC_KERNEL void operator()(T* __restrict grad_x, const T* __restrict grad_out,
                                  const T* __restrict out, std::int64_t count) const {
    for (std::int64_t i = 0; i < count; ++i) grad_x[i] = out[i] <= 0 ? T{0} : grad_out[i];
  }
};

struct ReluBackwardInPlace {
  template <typename T>
  GRADSYNC_KERNEL void operator()(T* __restrict grad, const T* __restrict out,
                                  std::int64_t count) const {
    for (std::int64_t i = 0; i < count; ++i) grad[i] = out[i] <= 0 ? T{0} : grad[i];
  }
};

struct AddTensors {
  template <typename T>
  GRADSYNC_KERNEL void operator()(T* __restrict out, const T* __restrict a, const T* __restrict b,
                                  std::int64_t count) const {
    for (std::int64_t i = 0; i < count; ++i) out[i] = a[i] + b[i];
  }
};

struct Sum {
  template <typename T>
  GRADSYNC_KERNEL T operator()(const T* x, std::int64_t count) const {
    return lane_sum<T>(count, [x](std::int64_t i) { return x[i]; });
  }
};

struct LogSumExpRows {
  template <typename T>
  GRADSYNC_KERNEL void operator()(T* __restrict out, const T* __restrict x, std::int64_t rows,
                                  std::int64_t columns) const {
    for (std::int64_t row = 0; row < rows; ++row, x += columns) {
      const T max = largest(x, columns);
      const T sum = lane_sum<T>(columns, [&](std::int64_t i) { return exponential(x[i] - max); });
      out[row] = max + std::log(sum);
    }
  }
};

struct CrossEntropyRowsBackward {
  template <typename T>
  GRADSYNC_KERNEL void operator()(T* __restrict grad, const T* __restrict logits,
                                  const T* __restrict log_normalizer,
                                  const std::int64_t* __restrict targets, T factor,
                                  std::int64_t rows, std::int64_t columns) const {
    for (std::int64_t row = 0; row < rows; ++row, grad += columns, logits += columns) {
      const T normalizer = log_normalizer[row];
      for (std::int64_t i = 0; i < columns; ++i) {
        grad[i] = exponential(logits[i] - normalizer) * factor;
      }
      grad[targets[row]] -= factor;
    }
  }
};

}  // namespace

template <typename T>
void fill_rows(T* out, const T* bias, std::int64_t rows, std::int64_t columns) {
  for (std::int64_t row = 0; row < rows; ++row) std::copy_n(bias, columns, out + row * columns);
}

template <typename T>
void sum_rows(T* out, const T* x, std::int64_t rows, std::int64_t columns) {
  simd::dispatch(SumRows{}, out, x, rows, columns);
}

template <typename T>
void scatter_add_rows(T* out, const T* x, const std::int64_t* ids, std::int64_t rows,
                      std::int64_t columns) {
  simd::dispatch(ScatterAddRows{}, out, x, ids, rows, columns);
}

template <typename T>
void softmax_rows(T* x, std::int64_t rows, std::int64_t columns) {
  simd::dispatch(SoftmaxRows{}, x, rows, columns);
}

template <typename T>
void softmax_rows_backward(T* grad, const T* probabilities, T factor, std::int64_t rows,
                           std::int64_t columns) {
  simd::dispatch(SoftmaxRowsBackward{}, grad, probabilities, factor, rows, columns);
}

template <typename T>
void relu(T* out, const T* x, std::int64_t count) {
  if (out == x) {
    simd::dispatch(ReluInPlace{}, out, count);
  } else {
    simd::dispatch(Relu{}, out, x, count);
  }
}

template <typename T>
void relu_backward(T* grad_x, const T* grad_out, const T* out, std::int64_t count) {
  if (grad_x == grad_out) {
    simd::dispatch(ReluBackwardInPlace{}, grad_x, out, count);
  } else {
    simd::dispatch(ReluBackward{}, grad_x, grad_out, out, count);
  }
}

template <typename T>
void add_tensors(T* out, const T* a, const T* b, std::int64_t count) {
  simd::dispatch(AddTensors{}, out, a, b, count);
}

template <typename T>
T sum(const T* x, std::int64_t count) {
  return simd::dispatch(Sum{}, x, count);
}

template <typename T>
void log_sum_exp_rows(T* out, const T* x, std::int64_t rows, std::int64_t columns) {
  simd::dispatch(LogSumExpRows{}, out, x, rows, columns);
}

template <typename T>
void cross_entropy_rows_backward(T* grad, const T* logits, const T* log_normalizer,
                                 const std::int64_t* targets, T factor, std::int64_t rows,
                                 std::int64_t columns) {
  simd::dispatch(CrossEntropyRowsBackward{}, grad, logits, log_normalizer, targets, factor, rows,
                 columns);
}

#define GRADSYNC_INSTANTIATE(T)                                                                  \
  template void fill_rows(T*, const T*, std::int64_t, std::int64_t);                             \
  template void sum_rows(T*, const T*, std::int64_t, std::int64_t);                              \
  template void scatter_add_rows(T*, const T*, const std::int64_t*, std::int64_t, std::int64_t); \
  template void softmax_rows(T*, std::int64_t, std::int64_t);                                    \
  template void softmax_rows_backward(T*, const T*, T, std::int64_t, std::int64_t);              \
  template T sum(const T*, std::int64_t);                                                        \
  template void relu(T*, const T*, std::int64_t);                                                \
  template void relu_backward(T*, const T*, const T*, std::int64_t);                             \
  template void add_tensors(T*, const T*, const T*, std::int64_t);                               \
  template void log_sum_exp_rows(T*, const T*, std::int64_t, std::int64_t);                      \
  template void cross_entropy_rows_backward(T*, const T*, const T*, const std::int64_t*, T,      \
                                            std::int64_t, std::int64_t);
GRADSYNC_INSTANTIATE(float)
GRADSYNC_INSTANTIATE(double)
#undef GRADSYNC_INSTANTIATE

}  // namespace gradsync::cpu
