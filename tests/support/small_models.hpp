#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gradsync/models/model.hpp"
#include "gradsync/tensor/tensor.hpp"

namespace gradsync::test {

/// A parameter on the CPU with every element `value`.
inline ParameterPtr make_parameter(std::string name, Shape shape, float value = 0,
                                   bool requires_grad = true, DType dtype = DType::kFloat32) {
  Tensor data = Tensor::empty(std::move(shape), dtype, cpu_device());
  cpu_device().fill(data, value);
  return std::make_shared<Parameter>(std::move(name), std::move(data), requires_grad);
}

/// Test double of a model: forward is a function that the test gives.
class LambdaModel final : public Model {
 public:
  using Forward = std::function<std::vector<Variable>(const Batch&, Graph&)>;

  explicit LambdaModel(std::vector<ParameterPtr> parameters, Forward forward = {},
                       std::vector<BufferPtr> buffers = {})
      : parameters_(std::move(parameters)),
        buffers_(std::move(buffers)),
        forward_(std::move(forward)) {}

  const std::vector<ParameterPtr>& parameters() const override { return parameters_; }
  const std::vector<BufferPtr>& buffers() const override { return buffers_; }
  std::vector<Variable> forward(const Batch& batch, Graph& graph) override {
    return forward_(batch, graph);
  }
  void set_forward(Forward forward) { forward_ = std::move(forward); }

 private:
  std::vector<ParameterPtr> parameters_;
  std::vector<BufferPtr> buffers_;
  Forward forward_;
};

/// An operation whose gradients are given: element i of `parameter`'s is value(i); no value, an
/// undefined gradient. `observe` is called when it runs.
class GivenGradient final : public Node {
 public:
  using Value = std::function<float(std::int64_t)>;

  GivenGradient(NodePtr next, Graph& graph, const ParameterPtr& parameter, Value value)
      : Node("GivenGradient", {std::move(next), graph.leaf(parameter).node}),
        parameter_(parameter.get()),
        value_(std::move(value)) {}

  std::vector<Tensor> backward(Tensor grad_output, BackwardPass&) override {
    if (!value_) return {std::move(grad_output), Tensor()};
    Tensor gradient = parameter_->data.empty_like();
    if (!gradient.is_meta()) {
      Tensor wide = Tensor::empty(gradient.shape(), DType::kFloat32, cpu_device());
      const auto elements = wide.span<float>();
      for (std::size_t i = 0; i < elements.size(); ++i) {
        elements[i] = value_(static_cast<std::int64_t>(i));
      }
      cpu_device().cast(gradient, wide);
    }
    return {std::move(grad_output), std::move(gradient)};
  }

 private:
  const Parameter* parameter_;
  Value value_;
};

/// One gradient of a scripted backward pass.
struct Use {
  ParameterPtr parameter;
  GivenGradient::Value value;
};

/// A scalar whose backward pass reaches the given parameters, in this order.
inline Variable scripted_loss(Graph& graph, const std::vector<Use>& order) {
  Variable chain{Tensor::zeros({}, DType::kFloat32, cpu_device()), nullptr};
  for (auto use = order.rbegin(); use != order.rend(); ++use) {
    auto node =
        std::make_shared<GivenGradient>(std::move(chain.node), graph, use->parameter, use->value);
    chain = graph.record(std::move(chain.data), std::move(node));
  }
  return chain;
}

/// The same, each gradient filled with one number.
inline Variable scripted_loss(Graph& graph, const std::vector<ParameterPtr>& order, float value) {
  std::vector<Use> uses;
  for (const ParameterPtr& parameter : order) {
    uses.push_back({parameter, [value](std::int64_t) { return value; }});
  }
  return scripted_loss(graph, uses);
}

}  // namespace gradsync::test
