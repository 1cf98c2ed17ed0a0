#pragma once

#include <cstdint>

#include "gradsync/autograd/graph.hpp"

/// Differentiable operations. Each one computes its result with the kernels of its inputs' device,
/// records itself on the graph, and charges its matrix products to the graph's clock: 2 m n k for
/// the product of an m x k and a k x n matrix, forward and backward, also on meta tensors. Other
/// arithmetic is free (the convention of torch.utils.flop_counter).
///
/// If a variable is passed by value and is the only owner of its tensor (a temporary), the result
/// reuses its memory.
///
/// Incompatible shapes throw Error(kMisuse) naming the operation and the shapes. [...] stands for
/// any leading dimensions.
namespace gradsync::ops {

/// x[..., k] weight[n, k]^T + bias[n]: [..., n]. `bias` may be undefined. The bias gradient becomes
/// ready before the weight gradient, as in PyTorch.
Variable linear(Graph& graph, const Variable& x, const Variable& weight, const Variable& bias);

/// weight[ids[...], d]: [..., d]. `ids` is int64.
Variable embedding(Graph& graph, const Tensor& ids, const Variable& weight);

/// (x - mean) / sqrt(variance + eps) * weight + bias over the last dimension.
Variable layer_norm(Graph& graph, const Variable& x, const Variable& weight, const Variable& bias,
                    double eps = 1e-5);

/// Scaled dot-product self-attention over each sequence with `heads` heads and no mask. qkv[batch,
/// seq, 3 d] holds queries, keys and values side by side. Returns [batch, seq, d].
Variable self_attention(Graph& graph, const Variable& qkv, std::int64_t heads);

struct MultiHeadAttentionParameters {
  Variable in_proj_weight;   ///< [3 d, d]: query, key and value weights, stacked
  Variable in_proj_bias;     ///< [3 d]
  Variable out_proj_weight;  ///< [d, d]
  Variable out_proj_bias;    ///< [d]
};
/// torch.nn.MultiheadAttention with its parameter packing: self-attention over x[batch, seq, d]
/// (batch_first, no mask, no dropout). Returns [batch, seq, d].
Variable multi_head_attention(Graph& graph, const Variable& x,
                              const MultiHeadAttentionParameters& parameters, std::int64_t heads);

/// The non-parameter state of torch.nn.BatchNorm1d. Every training forward pass updates it.
struct BatchNormState {
  Tensor running_mean;         ///< [f]
  Tensor running_variance;     ///< [f]
  Tensor num_batches_tracked;  ///< int64 scalar
};
/// Batch norm in training mode over all rows of x[..., f]; needs at least two rows. Moves the
/// running moments by `momentum` and increments the batch counter.
Variable batch_norm(Graph& graph, const Variable& x, const Variable& weight, const Variable& bias,
                    BatchNormState& state, double momentum = 0.1, double eps = 1e-5);

/// max(x, 0)
Variable relu(Graph& graph, Variable x);

/// a + b, same shape.
Variable add(Graph& graph, const Variable& a, Variable b);

/// Sum of all elements: a scalar.
Variable sum(Graph& graph, const Variable& x);

/// Mean over all rows of -log(softmax(logits[..., classes])[target]): a scalar. `targets` [...] is
/// int64.
Variable cross_entropy(Graph& graph, const Variable& logits, const Tensor& targets);

}  // namespace gradsync::ops
