#include "engine/models/transformer.hpp"

#include <string>

#include "engine/autograd/ops.hpp"
#include "engine/core/error.hpp"

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

}  // namespace

TransformerModel::Block::Block(ParameterFactory& factory, const std::string& name,
                               const TransformerOptions& options)
    : attention(factory, name + ".attn", options.d_model, options.nhead),
      widen(factory, name + ".ff.0", options.d_model, options.dim_feedforward),
      narrow(factory, name + ".ff.2", options.dim_feedforward, options.d_model),
      norm1(factory, name + ".norm1", options.d_model),
      norm2(factory, name + ".norm2", options.d_model) {}

Variable TransformerModel::Block::forward(Graph& graph, const Variable& x, bool norm_first) const {
  const auto feed_forward = [&](const Variable& in) {
    return narrow.forward(graph, ops::relu(graph, widen.forward(graph, in)));
  };
  if (norm_first) {
    const Variable y = ops::add(graph, x, attention.forward(graph, norm1.forward(graph, x)));
    return ops::add(graph, y, feed_forward(norm2.forward(graph, y)));
  }
  const Variable y = norm1.forward(graph, ops::add(graph, x, attention.forward(graph, x)));
  return norm2.forward(graph, ops::add(graph, y, feed_forward(y)));
}

TransformerModel::TransformerModel(const TransformerOptions& options, std::uint64_t seed,
                                   Device& device)
    : options_(checked(options)),
      factory_(seed, device),
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
  Variable x = embedding_.forward(graph, batch.inputs);
  for (const Block& block : blocks_) x = block.forward(graph, x, options_.norm_first);
  const Variable logits = head_.forward(graph, x);
  return {ops::cross_entropy(graph, logits, batch.targets), logits};
}

}  // namespace gradsync
