#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <nlohmann/json.hpp>

#include "gradsync/models/model.hpp"

namespace gradsync::torch_tests {

/// A model whose gradients are given: its loss is a sum of products p * g, so the gradient of a
/// parameter is the array g itself, equal to the last bit to what tests/torch/fed_model.py feeds to
/// PyTorch. That file describes the case's "model" and when its buffers change.
class FedModel final : public Model {
 public:
  FedModel(const nlohmann::json& case_, int rank);

  const std::vector<ParameterPtr>& parameters() const override { return parameters_; }
  const std::vector<BufferPtr>& buffers() const override { return buffers_; }

  /// Uses batch.sample_indices alone. The loss is the number 0: nothing that is compared needs its
  /// value.
  std::vector<Variable> forward(const Batch& batch, Graph& graph) override;

 private:
  void update_buffers();

  std::uint64_t seed_;
  std::uint64_t rank_;
  DType dtype_;
  std::vector<std::vector<std::size_t>> uses_;  // by forward
  std::vector<ParameterPtr> parameters_;
  std::vector<BufferPtr> buffers_;
  std::uint64_t forwards_ = 0;
};

}  // namespace gradsync::torch_tests
