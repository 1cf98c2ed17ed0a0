#include <cmath>
#include <limits>

#include "gradsync/backends/cuda/cuda_kernels.hpp"
#include "gradsync/backends/cuda/kernels/batch.cuh"

namespace gradsync::cuda {
namespace {

// The arithmetic of engine/tensor/cpu_kernels.cpp, operation by operation. -fmad=false keeps nvcc
// from fusing more than the source says, so that updates are bit-identical to the CPU's.

template <typename Math>
struct AdamWScalars {
  Math decay, sign, lerp, lerp_far, beta2, one_minus_beta2, root_bias2, eps, negative_step;

  explicit AdamWScalars(const AdamWStep& step)
      : decay(static_cast<Math>(1 - step.lr * step.weight_decay)),
        sign(step.maximize ? Math{-1} : Math{1}),
        lerp(static_cast<Math>(1 - step.beta1)),
        lerp_far(lerp < Math{0.5} ? Math{0} : lerp - 1),
        beta2(static_cast<Math>(step.beta2)),
        one_minus_beta2(static_cast<Math>(1 - step.beta2)),
        root_bias2(
            static_cast<Math>(std::sqrt(1 - std::pow(step.beta2, static_cast<double>(step.step))))),
        eps(static_cast<Math>(step.eps)),
        negative_step(static_cast<Math>(
            -(step.lr / (1 - std::pow(step.beta1, static_cast<double>(step.step)))))) {}
};

template <typename T>
__global__ void adamw_kernel(Batch<AdamWItem> batch, AdamWScalars<MathType<T>> s) {
  using Math = MathType<T>;
  const AdamWItem& item = batch.items[blockIdx.y];
  T* const param = static_cast<T*>(item.param);
  const T* const grad = static_cast<const T*>(item.grad);
  T* const exp_avg = static_cast<T*>(item.exp_avg);
  T* const exp_avg_sq = static_cast<T*>(item.exp_avg_sq);
  T* const max_exp_avg_sq = static_cast<T*>(item.max_exp_avg_sq);
  for (std::int64_t i = first_element(); i < item.count; i += element_step()) {
    const Math g = widen(grad[i]) * s.sign;
    const Math p = widen(param[i]) * s.decay;
    const Math m0 = widen(exp_avg[i]);
    const Math m = s.lerp_far == 0 ? std::fma(s.lerp, g - m0, m0) : std::fma(s.lerp_far, g - m0, g);
    const Math v = std::fma(s.one_minus_beta2 * g, g, widen(exp_avg_sq[i]) * s.beta2);
    exp_avg[i] = narrow<T>(m);
    exp_avg_sq[i] = narrow<T>(v);
    Math v_used = v;
    if (max_exp_avg_sq != nullptr) {
      const Math before = widen(max_exp_avg_sq[i]);
      v_used = before > v ? before : v;
      max_exp_avg_sq[i] = narrow<T>(v_used);
    }
    const Math denominator = std::sqrt(v_used) / s.root_bias2 + s.eps;
    param[i] = narrow<T>(p + s.negative_step * m / denominator);
  }
}

template <typename Math>
struct SgdScalars {
  Math sign, weight_decay, momentum, keep, negative_lr;
  bool decays, nesterov, first;

  explicit SgdScalars(const SgdStep& step)
      : sign(step.maximize ? Math{-1} : Math{1}),
        weight_decay(static_cast<Math>(step.weight_decay)),
        momentum(static_cast<Math>(step.momentum)),
        keep(static_cast<Math>(1 - step.dampening)),
        negative_lr(static_cast<Math>(-step.lr)),
        decays(step.weight_decay != 0),
        nesterov(step.nesterov),
        first(step.first) {}
};

template <typename T>
__global__ void sgd_kernel(Batch<SgdItem> batch, SgdScalars<MathType<T>> s) {
  using Math = MathType<T>;
  const SgdItem& item = batch.items[blockIdx.y];
  T* const param = static_cast<T*>(item.param);
  const T* const grad = static_cast<const T*>(item.grad);
  T* const momentum_buffer = static_cast<T*>(item.momentum_buffer);
  for (std::int64_t i = first_element(); i < item.count; i += element_step()) {
    const Math p = widen(param[i]);
    Math g = widen(grad[i]) * s.sign;
    if (s.decays) g = std::fma(p, s.weight_decay, g);
    if (momentum_buffer != nullptr) {
      const Math m = s.first ? g : std::fma(g, s.keep, widen(momentum_buffer[i]) * s.momentum);
      momentum_buffer[i] = narrow<T>(m);
      g = s.nesterov ? std::fma(m, s.momentum, g) : m;
    }
    param[i] = narrow<T>(std::fma(g, s.negative_lr, p));
  }
}

// Norms: a fixed number of blocks sums each tensor; each thread sums every k-th element, the
// threads are reduced as a tree, and the blocks one after another. The order does not depend on the
// GPU.

constexpr int kPartials = 64;

struct NormOrder {
  bool two, one, infinite;
  double p;
};

template <typename T>
__device__ MathType<T> norm_term(T element, const NormOrder& order) {
  const MathType<T> value = std::fabs(widen(element));
  if (order.two) return value * value;
  if (order.one || order.infinite) return value;
  return std::pow(value, static_cast<MathType<T>>(order.p));
}

template <typename T>
__global__ void norm_partial_kernel(Batch<NormItem> batch, NormOrder order, double* partial) {
  using Math = MathType<T>;
  const NormItem& item = batch.items[blockIdx.y];
  const T* const data = static_cast<const T*>(item.data);
  Math sum = 0;
  for (std::int64_t i = first_element(); i < item.count; i += element_step()) {
    const Math term = norm_term(data[i], order);
    sum = order.infinite ? Larger{}(sum, term) : sum + term;
  }
  const Math total = order.infinite ? reduce_block(sum, Larger{}) : reduce_block(sum, Plus{});
  if (threadIdx.x == 0) {
    partial[static_cast<std::int64_t>(blockIdx.y) * kPartials + blockIdx.x] =
        static_cast<double>(total);
  }
}

template <typename T>
__global__ void norm_finish_kernel(Batch<double*> norms, NormOrder order, const double* partial) {
  if (threadIdx.x != 0) return;
  using Math = MathType<T>;
  const double* const of_item = partial + static_cast<std::int64_t>(blockIdx.x) * kPartials;
  double sum = 0;
  for (int i = 0; i < kPartials; ++i) {
    sum = order.infinite ? Larger{}(sum, of_item[i]) : sum + of_item[i];
  }
  if (order.two) sum = std::sqrt(sum);
  if (!order.two && !order.one && !order.infinite) sum = std::pow(sum, 1 / order.p);
  *norms.items[blockIdx.x] = static_cast<double>(widen(narrow<T>(static_cast<Math>(sum))));
}

}  // namespace

std::int64_t norm_partials() noexcept {
  return kPartials;
}

void norm_many(CudaStream stream, std::span<const NormItem> items, DType dtype, double p,
               double* norms, double* partial) {
  const NormOrder order{p == 2, p == 1, std::isinf(p), p};
  with_floating_type(dtype, "norm", [&](auto tag) {
    using T = decltype(tag);
    std::size_t next = 0;  // index in `items`: empty tensors keep their zero
    for_each_batch(items, [&](const Batch<NormItem>& batch, unsigned tensors, std::int64_t) {
      Batch<double*> results{};
      for (unsigned k = 0; k < tensors; ++k, ++next) {
        while (items[next].count == 0) ++next;
        results.items[k] = norms + next;
      }
      launch(norm_partial_kernel<T>, dim3(kPartials, tensors), stream, batch, order, partial);
      launch(norm_finish_kernel<T>, dim3(tensors), stream, results, order, partial);
    });
  });
}

void adamw_many(CudaStream stream, std::span<const AdamWItem> items, DType dtype,
                const AdamWStep& step) {
  with_floating_type(dtype, "adamw_step", [&](auto tag) {
    using T = decltype(tag);
    const AdamWScalars<MathType<T>> scalars(step);
    for_each_batch(items,
                   [&](const Batch<AdamWItem>& batch, unsigned tensors, std::int64_t longest) {
                     launch(adamw_kernel<T>, dim3(blocks_for(longest, kMostBlocksOfItem), tensors),
                            stream, batch, scalars);
                   });
  });
}

void sgd_many(CudaStream stream, std::span<const SgdItem> items, DType dtype, const SgdStep& step) {
  with_floating_type(dtype, "sgd_step", [&](auto tag) {
    using T = decltype(tag);
    const SgdScalars<MathType<T>> scalars(step);
    for_each_batch(items, [&](const Batch<SgdItem>& batch, unsigned tensors, std::int64_t longest) {
      launch(sgd_kernel<T>, dim3(blocks_for(longest, kMostBlocksOfItem), tensors), stream, batch,
             scalars);
    });
  });
}

}  // namespace gradsync::cuda
