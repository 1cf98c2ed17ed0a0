#include "gradsync/models/transformer.hpp"

#include <string>

#include "gradsync/autograd/ops.hpp"
#include "gradsync/core/error.hpp"

namespace gradsync {
namespace {

const TransformerOptions& checked(const TransformerOptions& options) {
  const auto positive = [](const char* name, std::int64_t value) {
    if (value > 0) return;
    throw Error(ErrorCode::kMisuse, std::string("transformer: ") + name + " must be positive, is " +
                                        std::to_string(value));
  };
  positive("vocab_size", options.vocab_size);
  positive("d_model", options.d_model);
  positive("nhead", options.nhead);
  positive("num_layers", options.num_layers);
  positive("dim_feedforward", options.dim_feedforward);
  if (options.d_model % options.nhead != 0) {
    throw Error(ErrorCode::kMisuse, "transformer: d_model " + std::to_string(options.d_model) +
                                        " must be a multiple of nhead " +
                                        std::to_string(options.nhead));
  }
  return options;
}

std::variant<LayerNorm, BatchNorm1d> make_norm(ParameterFactory& factory, const std::string& name,
                                               const TransformerOptions& options) {
  if (options.norm == BlockNorm::kBatchNorm) return BatchNorm1d(factory, name, options.d_model);
  return LayerNorm(factory, name, options.d_model);
}

}  // namespace

TransformerModel::Block::Block(ParameterFactory& factory, const std::string& name,
                               const TransformerOptions& options)
    : attention(factory, name + ".attn", options.d_model, options.nhead),
      widen(factory, name + ".ff.0", options.d_model, options.dim_feedforward),
      narrow(factory, name + ".ff.2", options.dim_feedforward, options.d_model),
      norm1(make_norm(factory, name + ".norm1", options)),
      norm2(make_norm(factory, name + ".norm2", options)) {}

Variable TransformerModel::Block::forward(Graph& graph, const Variable& x, bool norm_first) const {
  const auto feed_forward = [&](const Variable& in) {
    return narrow.forward(graph, ops::relu(graph, widen.forward(graph, in)));
  };
  const auto normalized = [&](const Norm& norm, const Variable& in) {
    return std::visit([&](const auto& layer) { return layer.forward(graph, in); }, norm);
  };
  if (norm_first) {
    const Variable y = ops::add(graph, x, attention.forward(graph, normalized(norm1, x)));
    return ops::add(graph, y, feed_forward(normalized(norm2, y)));
  }
  const Variable y = normalized(norm1, ops::add(graph, x, attention.forward(graph, x)));
  return normalized(norm2, ops::add(graph, y, feed_forward(y)));
}

TransformerModel::TransformerModel(const TransformerOptions& options, std::uint64_t seed,
                                   Device& device)
    : options_(checked(options)),
      factory_(seed, device, options.dtype),
      embedding_(factory_, "embed", options.vocab_size, options.d_model),
      blocks_([&] {
        std::vector<Block> blocks;
        for (std::int64_t i = 0; i < options.num_layers; ++i) {
          blocks.emplace_back(factory_, "layers." + std::to_string(i), options);
        }
        return blocks;
      }()),
      head_(factory_, "head", options.d_model, options.vocab_size) {}

std::vector<Variable> TransformerModel::forward(const Batch& batch, Graph& graph) {
  Variable x = embedding_.forward(graph, batch.tensors.at("tokens"));
  for (const Block& block : blocks_) x = block.forward(graph, x, options_.norm_first);
  const Variable logits = head_.forward(graph, x);
  return {ops::cross_entropy(graph, logits, batch.tensors.at("targets")), logits};
}

}  // namespace gradsync
