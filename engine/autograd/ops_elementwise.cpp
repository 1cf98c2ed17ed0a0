#include "gradsync/autograd/operation.hpp"
#include "gradsync/autograd/ops.hpp"

namespace gradsync::ops {
namespace {

class Relu final : public OperationNode {
 public:
  Relu(const Graph& graph, NodePtr x, Tensor out)
      : OperationNode("Relu", graph, {std::move(x)}), out_(std::move(out)) {}

 protected:
  std::vector<Tensor> gradients(Tensor grad_output) override {
    Tensor grad_x = grad_output.unique() ? grad_output : grad_output.empty_like();
    grad_output.device().kernels().relu_backward(grad_x, grad_output, out_);
    return {std::move(grad_x)};
  }

 private:
  Tensor out_;
};

class Add final : public OperationNode {
 public:
  Add(const Graph& graph, NodePtr a, NodePtr b)
      : OperationNode("Add", graph, {std::move(a), std::move(b)}) {}

 protected:
  std::vector<Tensor> gradients(Tensor grad_output) override { return {grad_output, grad_output}; }
};

class Sum final : public OperationNode {
 public:
  Sum(const Graph& graph, const Variable& x) : OperationNode("Sum", graph, {x.node}), x_(x.data) {}

 protected:
  std::vector<Tensor> gradients(Tensor grad_output) override {
    Tensor grad_x = x_.empty_like();
    grad_x.device().kernels().sum_backward(grad_x, grad_output);
    return {std::move(grad_x)};
  }

 private:
  Tensor x_;
};

}  // namespace

Variable relu(Graph& graph, Variable x) {
  Tensor out = x.data.unique() ? x.data : x.data.empty_like();
  out.device().kernels().relu_forward(out, x.data);
  return graph.record(out, std::make_shared<Relu>(graph, std::move(x.node), out));
}

Variable add(Graph& graph, const Variable& a, Variable b) {
  if (a.data.shape() != b.data.shape() || a.data.dtype() != b.data.dtype()) {
    refuse_inputs("add", {a.data, b.data}, "it needs two tensors of one shape and dtype");
  }
  Device& device = a.data.device();
  auto node = std::make_shared<Add>(graph, a.node, std::move(b.node));
  if (b.data.unique()) {
    device.add(b.data, a.data);
    return graph.record(std::move(b.data), std::move(node));
  }
  Tensor out = a.data.empty_like();
  device.kernels().add_forward(out, a.data, b.data);
  return graph.record(std::move(out), std::move(node));
}

Variable sum(Graph& graph, const Variable& x) {
  Tensor out = Tensor::empty({}, x.data.dtype(), x.data.device());
  out.device().kernels().sum_forward(out, x.data);
  return graph.record(std::move(out), std::make_shared<Sum>(graph, x));
}

}  // namespace gradsync::ops
