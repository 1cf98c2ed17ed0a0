#include "gradsync/autograd/operation.hpp"
#include "gradsync/autograd/ops.hpp"

namespace gradsync::ops {
namespace {

/// Parents are bias, weight and input, in this order, which is the order of PyTorch's hooks.
class Linear final : public OperationNode {
 public:
  Linear(const Graph& graph, const Variable& x, const Variable& weight, const Variable& bias)
      : OperationNode("Linear", graph, {bias.node, weight.node, x.node}),
        x_(x.data),
        weight_(weight.data),
        bias_(bias.data) {}

 protected:
  std::vector<Tensor> gradients(Tensor grad_output) override {
    Tensor grad_bias = gradient_like(0, bias_);
    Tensor grad_weight = gradient_like(1, weight_);
    Tensor grad_x = gradient_like(2, x_);
    const double products = (grad_weight.defined() ? 1 : 0) + (grad_x.defined() ? 1 : 0);
    charge_flops(products * 2.0 * static_cast<double>(x_.numel()) *
                 static_cast<double>(weight_.shape()[0]));
    grad_output.device().kernels().linear_backward(grad_x, grad_weight, grad_bias, grad_output, x_,
                                                   weight_);
    return {std::move(grad_bias), std::move(grad_weight), std::move(grad_x)};
  }

 private:
  Tensor x_, weight_, bias_;
};

}  // namespace

Variable linear(Graph& graph, const Variable& x, const Variable& weight, const Variable& bias) {
  const Shape& table = weight.data.shape();
  if (table.size() != 2 || x.data.shape().empty() || x.data.shape().back() != table[1]) {
    refuse_inputs("linear", {x.data, weight.data}, "it needs x[..., k] and weight[n, k]");
  }
  if (bias.data.defined() && bias.data.shape() != Shape{table[0]}) {
    refuse_inputs("linear", {weight.data, bias.data}, "it needs weight[n, k] and bias[n]");
  }
  Device& device = x.data.device();
  Tensor out = Tensor::empty(with_last_dimension(x.data.shape(), table[0]), x.data.dtype(), device);
  graph.clock().charge_flops(2.0 * static_cast<double>(x.data.numel()) *
                             static_cast<double>(table[0]));
  device.kernels().linear_forward(out, x.data, weight.data, bias.data);
  return graph.record(std::move(out), std::make_shared<Linear>(graph, x, weight, bias));
}

}  // namespace gradsync::ops
