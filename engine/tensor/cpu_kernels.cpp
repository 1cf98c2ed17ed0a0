#include "gradsync/tensor/cpu_kernels.hpp"

#include <cmath>
#include <cstdint>
#include <limits>

#include "gradsync/tensor/element.hpp"
#include "gradsync/tensor/simd.hpp"

namespace gradsync::cpu {
namespace {

/// Conversion between storage type and compute type; the identity for float, double and integers.
template <typename T>
GRADSYNC_KERNEL MathType<T> widen(T value) {
  return static_cast<MathType<T>>(value);
}
template <typename T>
GRADSYNC_KERNEL T narrow(MathType<T> value) {
  return static_cast<T>(value);
}

struct Add {
  template <typename T>
  GRADSYNC_KERNEL void operator()(T* __restrict dst, const T* __restrict src,
                                  std::size_t count) const {
    for (std::size_t i = 0; i < count; ++i) {
      // The addition promotes integers narrower than int.
      dst[i] = static_cast<T>(widen(dst[i]) + widen(src[i]));
    }
  }
};

struct Scale {
  template <typename T>
  GRADSYNC_KERNEL void operator()(T* __restrict dst, const T* __restrict src, MathType<T> factor,
                                  std::size_t count) const {
    for (std::size_t i = 0; i < count; ++i) dst[i] = narrow<T>(widen(src[i]) * factor);
  }
};

struct ScaleInPlace {
  template <typename T>
  GRADSYNC_KERNEL void operator()(T* dst, MathType<T> factor, std::size_t count) const {
    for (std::size_t i = 0; i < count; ++i) dst[i] = narrow<T>(widen(dst[i]) * factor);
  }
};

struct Divide {
  template <typename T>
  GRADSYNC_KERNEL void operator()(T* dst, MathType<T> divisor, std::size_t count) const {
    for (std::size_t i = 0; i < count; ++i) dst[i] = narrow<T>(widen(dst[i]) / divisor);
  }
};

/// PyTorch's order on AVX2 for a contiguous float32 tensor: eight accumulators over full groups of
/// eight, one fused multiply-add per step; then the accumulators in order; then the remaining
/// elements in order; then the root.
struct SumOfSquares {
  template <typename T>
  GRADSYNC_KERNEL MathType<T> operator()(const T* x, std::size_t count) const {
    constexpr std::size_t kLanes = 8;
    using Math = MathType<T>;
    Math lanes[kLanes] = {};
    const std::size_t whole = count / kLanes * kLanes;
    for (std::size_t i = 0; i < whole; i += kLanes) {
      GRADSYNC_LANE_LOOP
      for (std::size_t lane = 0; lane < kLanes; ++lane) {
        const Math value = widen(x[i + lane]);
        lanes[lane] = std::fma(value, value, lanes[lane]);
      }
    }
    Math sum = lanes[0];
    for (std::size_t lane = 1; lane < kLanes; ++lane) sum += lanes[lane];
    for (std::size_t i = whole; i < count; ++i) {
      const Math value = widen(x[i]);
      sum = std::fma(value, value, sum);
    }
    return sum;
  }
};

struct AdamW {
  template <bool kAmsgrad, typename T, typename Math>
  GRADSYNC_KERNEL static void run(T* __restrict param, const T* __restrict grad,
                                  T* __restrict exp_avg, T* __restrict exp_avg_sq,
                                  T* __restrict max_exp_avg_sq, Math decay, Math sign, Math lerp,
                                  Math lerp_far, Math beta2, Math one_minus_beta2, Math root_bias2,
                                  Math eps, Math negative_step, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      const Math g = widen(grad[i]) * sign;
      const Math p = widen(param[i]) * decay;
      const Math m0 = widen(exp_avg[i]);
      // torch.lerp: interpolates from the nearer end, so that a weight of one gives exactly the
      // gradient.
      const Math m = lerp_far == 0 ? std::fma(lerp, g - m0, m0) : std::fma(lerp_far, g - m0, g);
      const Math v = std::fma(one_minus_beta2 * g, g, widen(exp_avg_sq[i]) * beta2);
      exp_avg[i] = narrow<T>(m);
      exp_avg_sq[i] = narrow<T>(v);
      Math v_used = v;
      if constexpr (kAmsgrad) {
        const Math before = widen(max_exp_avg_sq[i]);
        v_used = before > v ? before : v;
        max_exp_avg_sq[i] = narrow<T>(v_used);
      }
      const Math denominator = std::sqrt(v_used) / root_bias2 + eps;
      param[i] = narrow<T>(p + negative_step * m / denominator);
    }
  }

  template <typename T>
  GRADSYNC_KERNEL void operator()(T* param, const T* grad, T* exp_avg, T* exp_avg_sq,
                                  T* max_exp_avg_sq, const AdamWStep* step,
                                  std::size_t count) const {
    using Math = MathType<T>;
    const double bias1 = 1 - std::pow(step->beta1, static_cast<double>(step->step));
    const double bias2 = 1 - std::pow(step->beta2, static_cast<double>(step->step));
    const auto decay = static_cast<Math>(1 - step->lr * step->weight_decay);
    const Math sign = step->maximize ? Math{-1} : Math{1};
    const auto lerp = static_cast<Math>(1 - step->beta1);
    const Math lerp_far = lerp < Math{0.5} ? Math{0} : lerp - 1;
    const auto beta2 = static_cast<Math>(step->beta2);
    const auto one_minus_beta2 = static_cast<Math>(1 - step->beta2);
    const auto root_bias2 = static_cast<Math>(std::sqrt(bias2));
    const auto eps = static_cast<Math>(step->eps);
    const auto negative_step = static_cast<Math>(-(step->lr / bias1));
    if (max_exp_avg_sq != nullptr) {
      run<true>(param, grad, exp_avg, exp_avg_sq, max_exp_avg_sq, decay, sign, lerp, lerp_far,
                beta2, one_minus_beta2, root_bias2, eps, negative_step, count);
    } else {
      run<false>(param, grad, exp_avg, exp_avg_sq, max_exp_avg_sq, decay, sign, lerp, lerp_far,
                 beta2, one_minus_beta2, root_bias2, eps, negative_step, count);
    }
  }
};

/// PyTorch's vector kernels compute Tensor.add with alpha as a fused multiply-add.
struct Sgd {
  template <typename T>
  GRADSYNC_KERNEL void operator()(T* __restrict param, const T* __restrict grad,
                                  T* __restrict momentum_buffer, const SgdStep* step,
                                  std::size_t count) const {
    using Math = MathType<T>;
    const Math sign = step->maximize ? Math{-1} : Math{1};
    const auto weight_decay = static_cast<Math>(step->weight_decay);
    const auto momentum = static_cast<Math>(step->momentum);
    const auto keep = static_cast<Math>(1 - step->dampening);
    const auto negative_lr = static_cast<Math>(-step->lr);
    const bool decays = step->weight_decay != 0;
    for (std::size_t i = 0; i < count; ++i) {
      const Math p = widen(param[i]);
      Math g = widen(grad[i]) * sign;
      if (decays) g = std::fma(p, weight_decay, g);
      if (momentum_buffer != nullptr) {
        const Math m = step->first ? g : std::fma(g, keep, widen(momentum_buffer[i]) * momentum);
        momentum_buffer[i] = narrow<T>(m);
        g = step->nesterov ? std::fma(m, momentum, g) : m;
      }
      param[i] = narrow<T>(std::fma(g, negative_lr, p));
    }
  }
};

}  // namespace

template <typename T>
void add(T* dst, const T* src, std::size_t count) {
  simd::dispatch(Add{}, dst, src, count);
}

template <typename T>
void scale(T* dst, const T* src, double factor, std::size_t count) {
  const MathType<T> rounded = static_cast<MathType<T>>(factor);
  if (dst == src) {
    simd::dispatch(ScaleInPlace{}, dst, rounded, count);
  } else {
    simd::dispatch(Scale{}, dst, src, rounded, count);
  }
}

template <typename T>
void divide(T* dst, double divisor, std::size_t count) {
  simd::dispatch(Divide{}, dst, static_cast<MathType<T>>(divisor), count);
}

template <typename T>
double norm_1(const T* x, std::size_t count) {
  MathType<T> sum = 0;  // one accumulator, in order, like PyTorch's generic reduction
  for (std::size_t i = 0; i < count; ++i) sum += std::fabs(widen(x[i]));
  return static_cast<double>(widen(narrow<T>(sum)));
}

template <typename T>
double norm_2(const T* x, std::size_t count) {
  const MathType<T> sum = simd::dispatch(SumOfSquares{}, x, count);
  return static_cast<double>(widen(narrow<T>(std::sqrt(sum))));
}

template <typename T>
double norm_p(const T* x, double p, std::size_t count) {
  const auto power = static_cast<MathType<T>>(p);
  MathType<T> sum = 0;
  for (std::size_t i = 0; i < count; ++i) sum += std::pow(std::fabs(widen(x[i])), power);
  return static_cast<double>(widen(narrow<T>(std::pow(sum, 1 / power))));
}

template <typename T>
double norm_inf(const T* x, std::size_t count) {
  MathType<T> largest = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const MathType<T> value = std::fabs(widen(x[i]));
    if (std::isnan(value)) return std::numeric_limits<double>::quiet_NaN();
    if (value > largest) largest = value;
  }
  return static_cast<double>(largest);
}

template <typename T>
void adamw(T* param, const T* grad, T* exp_avg, T* exp_avg_sq, T* max_exp_avg_sq,
           const AdamWStep& step, std::size_t count) {
  simd::dispatch(AdamW{}, param, grad, exp_avg, exp_avg_sq, max_exp_avg_sq, &step, count);
}

template <typename T>
void sgd(T* param, const T* grad, T* momentum_buffer, const SgdStep& step, std::size_t count) {
  simd::dispatch(Sgd{}, param, grad, momentum_buffer, &step, count);
}

template void add(std::int32_t*, const std::int32_t*, std::size_t);
template void add(std::int64_t*, const std::int64_t*, std::size_t);
template void add(std::uint8_t*, const std::uint8_t*, std::size_t);
#define GRADSYNC_INSTANTIATE(T)                                                 \
  template void add(T*, const T*, std::size_t);                                 \
  template void scale(T*, const T*, double, std::size_t);                       \
  template void divide(T*, double, std::size_t);                                \
  template double norm_1(const T*, std::size_t);                                \
  template double norm_2(const T*, std::size_t);                                \
  template double norm_p(const T*, double, std::size_t);                        \
  template double norm_inf(const T*, std::size_t);                              \
  template void adamw(T*, const T*, T*, T*, T*, const AdamWStep&, std::size_t); \
  template void sgd(T*, const T*, T*, const SgdStep&, std::size_t);
GRADSYNC_INSTANTIATE(float)
GRADSYNC_INSTANTIATE(double)
GRADSYNC_INSTANTIATE(Half)
GRADSYNC_INSTANTIATE(BFloat16)
#undef GRADSYNC_INSTANTIATE

}  // namespace gradsync::cpu
