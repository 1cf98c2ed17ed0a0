#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gradsync/autograd/graph.hpp"
#include "gradsync/models/model.hpp"

namespace gradsync::bench {

/// Sets every parameter's gradient to a prepared tensor, with one node per parameter.
class GivenGradient final : public Node {
 public:
  GivenGradient(NodePtr parameter, NodePtr rest, Tensor gradient)
      : Node("GivenGradient", {std::move(parameter), std::move(rest)}),
        gradient_(std::move(gradient)) {}
  std::vector<Tensor> backward(Tensor grad_output, BackwardPass&) override {
    return {gradient_, std::move(grad_output)};
  }

 private:
  Tensor gradient_;
};

/// A model whose forward and backward compute nothing, so that a step measures the engine's
/// overhead.
class GivenModel final : public Model {
 public:
  GivenModel(std::int64_t parameters, std::int64_t elements, Device& device)
      : scalar_(Tensor::zeros({}, DType::kFloat32, device)) {
    for (std::int64_t i = 0; i < parameters; ++i) {
      parameters_.push_back(std::make_shared<Parameter>(
          "p" + std::to_string(i), Tensor::zeros({elements}, DType::kFloat32, device)));
    }
  }
  const std::vector<ParameterPtr>& parameters() const override { return parameters_; }
  const std::vector<BufferPtr>& buffers() const override { return buffers_; }
  std::vector<Variable> forward(const Batch&, Graph& graph) override {
    Variable loss{scalar_, nullptr};
    for (const ParameterPtr& parameter : parameters_) {
      loss = graph.record(scalar_, std::make_shared<GivenGradient>(graph.leaf(parameter).node,
                                                                   loss.node, parameter->data));
    }
    return {loss};
  }

 private:
  Tensor scalar_;
  std::vector<ParameterPtr> parameters_;
  std::vector<BufferPtr> buffers_;
};

}  // namespace gradsync::bench
