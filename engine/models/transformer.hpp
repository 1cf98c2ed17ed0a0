#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "gradsync/models/layers.hpp"
#include "gradsync/models/model.hpp"
#include "gradsync/models/parameter_factory.hpp"
#include "gradsync/models/transformer_options.hpp"

namespace gradsync {

/// The handbook's SimpleModel: embedding, `num_layers` blocks of self-attention and a feed-forward
/// network with ReLU, each with a residual connection and a layer norm, and a linear head. No
/// positions, no mask, no dropout. Parameters are named, ordered and initialized as in PyTorch:
/// embed.weight, layers.i.attn.{in_proj_weight, in_proj_bias, out_proj.weight, out_proj.bias},
/// layers.i.ff.{0, 2}.{weight, bias}, layers.i.{norm1, norm2}.{weight, bias}, head.{weight, bias}.
/// With batch norm, layers.i.{norm1, norm2} also have the buffers of a BatchNorm1d, whose moments
/// are taken over all positions of all samples of a batch.
class TransformerModel final : public Model {
 public:
  /// Throws Error(kMisuse) for a non-positive size or a d_model that is not divisible by nhead.
  TransformerModel(const TransformerOptions& options, std::uint64_t seed, Device& device);

  const std::vector<ParameterPtr>& parameters() const override { return factory_.parameters(); }
  const std::vector<BufferPtr>& buffers() const override { return factory_.buffers(); }

  /// Returns the mean cross-entropy over all positions (a scalar) and the logits[batch, seq,
  /// vocab_size]. Reads the batch's "tokens" and "targets", both [batch, seq] int64.
  std::vector<Variable> forward(const Batch& batch, Graph& graph) override;

 private:
  using Norm = std::variant<LayerNorm, BatchNorm1d>;

  struct Block {
    Block(ParameterFactory& factory, const std::string& name, const TransformerOptions& options);
    Variable forward(Graph& graph, const Variable& x, bool norm_first) const;

    MultiHeadAttention attention;
    Linear widen, narrow;
    Norm norm1, norm2;
  };

  TransformerOptions options_;
  ParameterFactory factory_;
  Embedding embedding_;
  std::vector<Block> blocks_;
  Linear head_;
};

}  // namespace gradsync
