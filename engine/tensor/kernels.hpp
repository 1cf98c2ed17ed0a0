#pragma once

#include <cstdint>

#include "gradsync/tensor/tensor.hpp"

namespace gradsync {

/// The operations of a model's layers on one device. The tape calls this interface, and a new
/// device implements it. The meta device's kernels do nothing, so the tape runs on shapes alone.
///
/// Conventions. All tensors live on the device, are contiguous, and are allocated by the caller
/// with the shapes given here; [..., n] means any leading dimensions, flattened to rows. Values
/// have one floating-point dtype; indices are int64. Results overwrite their tensors. Pass an
/// undefined tensor for a gradient that is not needed. Calls are deterministic: the same inputs
/// give the same bits on the same device.
class Kernels {
 public:
  virtual ~Kernels() = default;

  /// out[..., n] = x[..., k] weight[n, k]^T + bias[n]; no bias if it is undefined.
  virtual void linear_forward(Tensor& out, const Tensor& x, const Tensor& weight,
                              const Tensor& bias) = 0;
  virtual void linear_backward(Tensor& grad_x, Tensor& grad_weight, Tensor& grad_bias,
                               const Tensor& grad_out, const Tensor& x, const Tensor& weight) = 0;

  /// out[..., d] = weight[ids[...], d]. An id out of range throws Error(kMisuse).
  virtual void embedding_forward(Tensor& out, const Tensor& weight, const Tensor& ids) = 0;
  virtual void embedding_backward(Tensor& grad_weight, const Tensor& grad_out,
                                  const Tensor& ids) = 0;

  /// Multi-head self-attention over each sequence, without a mask. qkv[batch, seq, 3 d] holds
  /// queries, keys and values side by side, each with its heads side by side; context[batch, seq,
  /// d] = softmax(q k^T / sqrt(d / heads)) v. probabilities[batch, heads, seq, seq] are kept for
  /// the backward pass.
  virtual void attention_forward(Tensor& context, Tensor& probabilities, const Tensor& qkv,
                                 std::int64_t heads) = 0;
  virtual void attention_backward(Tensor& grad_qkv, const Tensor& grad_context, const Tensor& qkv,
                                  const Tensor& probabilities, std::int64_t heads) = 0;

  /// out = (x - mean) * inverse_deviation * weight + bias over the last dimension. mean[...] and
  /// inverse_deviation[...] = 1 / sqrt(variance + eps) are kept for the backward pass. Request the
  /// gradients of weight and bias together or not at all.
  virtual void layer_norm_forward(Tensor& out, Tensor& mean, Tensor& inverse_deviation,
                                  const Tensor& x, const Tensor& weight, const Tensor& bias,
                                  double eps) = 0;
  virtual void layer_norm_backward(Tensor& grad_x, Tensor& grad_weight, Tensor& grad_bias,
                                   const Tensor& grad_out, const Tensor& x, const Tensor& mean,
                                   const Tensor& inverse_deviation, const Tensor& weight) = 0;

  /// Batch norm in training mode: out[..., f] = (x - mean) * inverse_deviation * weight + bias,
  /// with the moments of each of the f features over all rows, which are kept for the backward
  /// pass. Moves the running moments towards them by `momentum` (with the unbiased variance, as in
  /// PyTorch). Needs at least two rows. The gradients of weight and bias are always computed,
  /// because grad_x depends on them.
  virtual void batch_norm_forward(Tensor& out, Tensor& mean, Tensor& inverse_deviation,
                                  Tensor& running_mean, Tensor& running_variance, const Tensor& x,
                                  const Tensor& weight, const Tensor& bias, double momentum,
                                  double eps) = 0;
  virtual void batch_norm_backward(Tensor& grad_x, Tensor& grad_weight, Tensor& grad_bias,
                                   const Tensor& grad_out, const Tensor& x, const Tensor& mean,
                                   const Tensor& inverse_deviation, const Tensor& weight) = 0;

  /// out = max(x, 0). `out` may be `x`.
  virtual void relu_forward(Tensor& out, const Tensor& x) = 0;
  /// grad_x = grad_out where out > 0, else 0. `grad_x` may be `grad_out`.
  virtual void relu_backward(Tensor& grad_x, const Tensor& grad_out, const Tensor& out) = 0;

  /// out = a + b
  virtual void add_forward(Tensor& out, const Tensor& a, const Tensor& b) = 0;

  /// out[] = sum of x; grad_x = grad_out everywhere.
  virtual void sum_forward(Tensor& out, const Tensor& x) = 0;
  virtual void sum_backward(Tensor& grad_x, const Tensor& grad_out) = 0;

  /// loss[] = mean over rows of (log_normalizer - logits[row, target]); log_normalizer[...] =
  /// log(sum(exp(logits[..., classes]))) is kept for the backward pass. A target out of range
  /// throws Error(kMisuse).
  virtual void cross_entropy_forward(Tensor& loss, Tensor& log_normalizer, const Tensor& logits,
                                     const Tensor& targets) = 0;
  virtual void cross_entropy_backward(Tensor& grad_logits, const Tensor& grad_loss,
                                      const Tensor& logits, const Tensor& log_normalizer,
                                      const Tensor& targets) = 0;
};

}  // namespace gradsync
