#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "gradsync/autograd/graph.hpp"

namespace gradsync::test {

/// A leaf that is no parameter: x.requires_grad_() in PyTorch. Its gradient is left in
/// `gradient()`.
class InputLeaf final : public Node {
 public:
  InputLeaf() : Node("InputLeaf", {}) {}
  std::vector<Tensor> backward(Tensor grad_output, BackwardPass&) override {
    gradient_ = std::move(grad_output);
    return {};
  }
  const Tensor& gradient() const { return gradient_; }

 private:
  Tensor gradient_;
};

inline Variable input_that_needs_gradient(Tensor data) {
  return {std::move(data), std::make_shared<InputLeaf>()};
}

/// torch.utils.checkpoint(function, x, use_reentrant=True): runs `function` without recording it,
/// and in backward runs it again and differentiates it in a backward pass of its own. The graph
/// does not see the parameters that `function` uses, and x must need a gradient.
inline Variable reentrant_checkpoint(Graph& graph, const Variable& x,
                                     std::function<Variable(Graph&, const Variable&)> function) {
  class Checkpoint final : public Node {
   public:
    Checkpoint(Graph& owner, const Variable& input,
               std::function<Variable(Graph&, const Variable&)> body)
        : Node("Checkpoint", {input.node}),
          graph_(&owner),
          input_(input.data),
          function_(std::move(body)) {}

    std::vector<Tensor> backward(Tensor grad_output, BackwardPass&) override {
      const auto leaf = std::make_shared<InputLeaf>();
      const Variable output = function_(*graph_, {input_, leaf});
      graph_->backward({output}, {std::move(grad_output)});
      return {leaf->gradient()};
    }

   private:
    Graph* graph_;
    Tensor input_;
    std::function<Variable(Graph&, const Variable&)> function_;
  };

  Tensor output;
  {
    const NoGradGuard guard(graph);
    output = function(graph, x).data;
  }
  return graph.record(std::move(output),
                      std::make_shared<Checkpoint>(graph, x, std::move(function)));
}

}  // namespace gradsync::test
