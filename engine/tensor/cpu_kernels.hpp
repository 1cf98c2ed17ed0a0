#pragma once

#include <cstddef>

#include "gradsync/tensor/device.hpp"

namespace gradsync::cpu {

/// Element-wise kernels of the CPU device over `count` contiguous elements. T is float, double,
/// Half or BFloat16 (`add` also takes the integers). Deterministic: the same bits on every
/// processor, with and without vector instructions. Pointers must not overlap unless they are
/// equal.

/// dst[i] = dst[i] + src[i]
template <typename T>
void add(T* dst, const T* src, std::size_t count);
/// dst[i] = src[i] * factor, factor rounded to T's compute type
template <typename T>
void scale(T* dst, const T* src, double factor, std::size_t count);
/// dst[i] = dst[i] / divisor, divisor rounded to T's compute type
template <typename T>
void divide(T* dst, double divisor, std::size_t count);

/// sum of |x|, square root of the sum of squares, p-th root of the sum of |x|^p, largest |x| (NaN
/// if any is NaN).
template <typename T>
double norm_1(const T* x, std::size_t count);
template <typename T>
double norm_2(const T* x, std::size_t count);
template <typename T>
double norm_p(const T* x, double p, std::size_t count);
template <typename T>
double norm_inf(const T* x, std::size_t count);

/// `max_exp_avg_sq` is null unless amsgrad.
template <typename T>
void adamw(T* param, const T* grad, T* exp_avg, T* exp_avg_sq, T* max_exp_avg_sq,
           const AdamWStep& step, std::size_t count);
/// `momentum_buffer` is null if momentum is 0.
template <typename T>
void sgd(T* param, const T* grad, T* momentum_buffer, const SgdStep& step, std::size_t count);

}  // namespace gradsync::cpu
