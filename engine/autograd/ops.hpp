#pragma once

#include <cstdint>

#include "gradsync/autograd/graph.hpp"

/// Operations on variables. Each computes its result with the kernels of the device that its inputs
/// live on, enters itself on the graph, and charges its matrix products to the graph's clock: 2 m n
/// k for the product of an m x k and a k x n matrix, forward and backward, on meta tensors too.
/// Other arithmetic is not charged (the convention of torch.utils.flop_counter).
///
/// Where a variable is taken by value and nothing else holds its tensor (a temporary was passed),
/// the result takes over its memory.
///
/// Inputs of shapes that do not fit throw Error(kMisuse), naming operation and shapes. [...] stands
/// for any leading dimensions.
namespace gradsync::ops {

/// x[..., k] weight[n, k]^T + bias[n]: [..., n]. `bias` may be undefined. The gradient of the bias
/// is ready before that of the weight, as in PyTorch.
Variable linear(Graph& graph, const Variable& x, const Variable& weight, const Variable& bias);

/// weight[ids[...], d]: [..., d]. `ids` is int64.
Variable embedding(Graph& graph, const Tensor& ids, const Variable& weight);

/// (x - mean) / sqrt(variance + eps) * weight + bias over the last dimension.
Variable layer_norm(Graph& graph, const Variable& x, const Variable& weight, const Variable& bias,
                    double eps = 1e-5);

/// Scaled dot-product attention of each sequence over itself with `heads` heads, without a mask.
/// qkv[batch, seq, 3 d] holds queries, keys and values side by side: [batch, seq, d].
Variable self_attention(Graph& graph, const Variable& qkv, std::int64_t heads);

struct MultiHeadAttentionParameters {
  Variable in_proj_weight;   ///< [3 d, d]: of queries, keys and values, one below the other
  Variable in_proj_bias;     ///< [3 d]
  Variable out_proj_weight;  ///< [d, d]
  Variable out_proj_bias;    ///< [d]
};
/// torch.nn.MultiheadAttention with its packing: x[batch, seq, d] attends to itself (batch_first,
/// no mask, no dropout): [batch, seq, d].
Variable multi_head_attention(Graph& graph, const Variable& x,
                              const MultiHeadAttentionParameters& parameters, std::int64_t heads);

/// What torch.nn.BatchNorm1d keeps beside its parameters; changed by each forward pass.
struct BatchNormState {
  Tensor running_mean;         ///< [f]
  Tensor running_variance;     ///< [f]
  Tensor num_batches_tracked;  ///< int64 scalar
};
/// Batch norm in training over all rows of x[..., f], of which there must be at least two: moves
/// the running moments by `momentum` and counts the batch.
Variable batch_norm(Graph& graph, const Variable& x, const Variable& weight, const Variable& bias,
                    BatchNormState& state, double momentum = 0.1, double eps = 1e-5);

/// max(x, 0)
Variable relu(Graph& graph, Variable x);

/// a + b, of one shape.
Variable add(Graph& graph, const Variable& a, Variable b);

/// Sum of all elements: a scalar.
Variable sum(Graph& graph, const Variable& x);

/// Mean over all rows of -log(softmax(logits[..., classes])[target]): a scalar. `targets` [...] is
/// int64.
Variable cross_entropy(Graph& graph, const Variable& logits, const Tensor& targets);

}  // namespace gradsync::ops
