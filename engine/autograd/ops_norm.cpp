#include "gradsync/autograd/operation.hpp"
#include "gradsync/autograd/ops.hpp"

namespace gradsync::ops {
namespace {

/// Parents are input, weight and bias: the gradient of the weight is ready first.
class LayerNorm final : public OperationNode {
 public:
  LayerNorm(const Graph& graph, const Variable& x, const Variable& weight, const Variable& bias,
            Tensor mean, Tensor inverse_deviation)
      : OperationNode("LayerNorm", graph, {x.node, weight.node, bias.node}),
        x_(x.data),
        weight_(weight.data),
        mean_(std::move(mean)),
        inverse_deviation_(std::move(inverse_deviation)) {}

 protected:
  std::vector<Tensor> gradients(Tensor grad_output) override {
    Tensor grad_x = gradient_like(0, x_);
    Tensor grad_weight, grad_bias;
    if (needs_gradient(1) || needs_gradient(2)) {  // the kernel computes both in one pass
      grad_weight = weight_.empty_like();
      grad_bias = weight_.empty_like();
    }
    grad_output.device().kernels().layer_norm_backward(grad_x, grad_weight, grad_bias, grad_output,
                                                       x_, mean_, inverse_deviation_, weight_);
    return {std::move(grad_x), std::move(grad_weight), std::move(grad_bias)};
  }

 private:
  Tensor x_, weight_, mean_, inverse_deviation_;
};

/// Parents in the same order as LayerNorm.
class BatchNorm final : public OperationNode {
 public:
  BatchNorm(const Graph& graph, const Variable& x, const Variable& weight, const Variable& bias,
            Tensor mean, Tensor inverse_deviation)
      : OperationNode("BatchNorm", graph, {x.node, weight.node, bias.node}),
        x_(x.data),
        weight_(weight.data),
        mean_(std::move(mean)),
        inverse_deviation_(std::move(inverse_deviation)) {}

 protected:
  std::vector<Tensor> gradients(Tensor grad_output) override {
    Tensor grad_x = gradient_like(0, x_);
    Tensor grad_weight = weight_.empty_like(), grad_bias = weight_.empty_like();
    grad_output.device().kernels().batch_norm_backward(grad_x, grad_weight, grad_bias, grad_output,
                                                       x_, mean_, inverse_deviation_, weight_);
    return {std::move(grad_x), std::move(grad_weight), std::move(grad_bias)};
  }

 private:
  Tensor x_, weight_, mean_, inverse_deviation_;
};

}  // namespace

Variable layer_norm(Graph& graph, const Variable& x, const Variable& weight, const Variable& bias,
                    double eps) {
  const Shape& shape = x.data.shape();
  if (shape.empty() || weight.data.shape() != Shape{shape.back()} ||
      bias.data.shape() != Shape{shape.back()}) {
    refuse_inputs("layer_norm", {x.data, weight.data, bias.data},
                  "it needs x[..., d], weight[d] and bias[d]");
  }
  Device& device = x.data.device();
  Tensor out = x.data.empty_like();
  Tensor mean = Tensor::empty(Shape(shape.begin(), shape.end() - 1), x.data.dtype(), device);
  Tensor inverse_deviation = mean.empty_like();
  device.kernels().layer_norm_forward(out, mean, inverse_deviation, x.data, weight.data, bias.data,
                                      eps);
  return graph.record(std::move(out),
                      std::make_shared<LayerNorm>(graph, x, weight, bias, std::move(mean),
                                                  std::move(inverse_deviation)));
}

Variable batch_norm(Graph& graph, const Variable& x, const Variable& weight, const Variable& bias,
                    BatchNormState& state, double momentum, double eps) {
  const Shape& shape = x.data.shape();
  const Shape features{shape.empty() ? 0 : shape.back()};
  if (shape.empty() || weight.data.shape() != features || bias.data.shape() != features ||
      state.running_mean.shape() != features || state.running_variance.shape() != features) {
    refuse_inputs("batch_norm", {x.data, weight.data, bias.data, state.running_mean},
                  "it needs x[..., f] and f weights, biases and running moments");
  }
  if (x.data.numel() < 2 * features[0]) {
    refuse_inputs("batch_norm", {x.data}, "one row has no variance to train with");
  }
  Device& device = x.data.device();
  Tensor out = x.data.empty_like();
  Tensor mean = weight.data.empty_like(), inverse_deviation = weight.data.empty_like();
  device.kernels().batch_norm_forward(out, mean, inverse_deviation, state.running_mean,
                                      state.running_variance, x.data, weight.data, bias.data,
                                      momentum, eps);
  Tensor one = state.num_batches_tracked.empty_like();
  device.fill(one, 1);
  device.add(state.num_batches_tracked, one);
  return graph.record(std::move(out),
                      std::make_shared<BatchNorm>(graph, x, weight, bias, std::move(mean),
                                                  std::move(inverse_deviation)));
}

}  // namespace gradsync::ops
