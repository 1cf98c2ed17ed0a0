#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "gradsync/autograd/graph.hpp"
#include "gradsync/tensor/kernels.hpp"

namespace gradsync {

/// Common base of all operation nodes: charges the clock, and skips operations whose output the
/// loss does not use.
class OperationNode : public Node {
 public:
  OperationNode(const char* name, const Graph& graph, std::vector<NodePtr> parents)
      : Node(name, std::move(parents)), clock_(&graph.clock()) {}

  std::vector<Tensor> backward(Tensor grad_output, BackwardPass& pass) final;

 protected:
  /// Like `backward`, but `grad_output` is always defined.
  virtual std::vector<Tensor> gradients(Tensor grad_output) = 0;

  bool needs_gradient(std::size_t parent) const { return parents()[parent] != nullptr; }
  /// An uninitialized tensor shaped like `input`; undefined if the parent needs no gradient.
  Tensor gradient_like(std::size_t parent, const Tensor& input) const {
    return needs_gradient(parent) ? input.empty_like() : Tensor();
  }
  void charge_flops(double flops) const { clock_->charge_flops(flops); }

 private:
  Clock* clock_;
};

/// Throws Error(kMisuse): "OPERATION cannot take [2, 3] and [4]: REASON".
[[noreturn]] void refuse_inputs(const char* operation, std::initializer_list<Tensor> inputs,
                                const std::string& reason);

/// [..., last] -> [..., `last`]
Shape with_last_dimension(Shape shape, std::int64_t last);

}  // namespace gradsync
