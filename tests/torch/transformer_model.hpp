#pragma once

#include <cstdint>
#include <vector>

#include <nlohmann/json.hpp>

#include "gradsync/models/transformer.hpp"

namespace gradsync::torch_tests {

/// The handbook's model with the weights and tokens of a case (tests/torch/transformer_model.py
/// says which): each side computes for itself.
class CaseTransformer final : public Model {
 public:
  CaseTransformer(const nlohmann::json& case_, int rank);

  const std::vector<ParameterPtr>& parameters() const override { return model_.parameters(); }
  const std::vector<BufferPtr>& buffers() const override { return model_.buffers(); }

  /// Uses batch.sample_indices alone.
  std::vector<Variable> forward(const Batch& batch, Graph& graph) override;

 private:
  Tensor tokens(std::uint64_t stream_kind, const std::vector<std::int64_t>& samples) const;

  std::uint64_t seed_;
  std::int64_t vocab_size_;
  std::int64_t seq_len_;
  TransformerModel model_;
};

}  // namespace gradsync::torch_tests
