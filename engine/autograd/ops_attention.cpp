#include "gradsync/autograd/operation.hpp"
#include "gradsync/autograd/ops.hpp"

namespace gradsync::ops {
namespace {

/// Both products of the forward pass; the backward pass has four of the same size.
double attention_flops(const Tensor& qkv) {
  const Shape& shape = qkv.shape();
  return 2 * 2.0 * static_cast<double>(qkv.numel() / 3) * static_cast<double>(shape[1]);
}

class SelfAttention final : public OperationNode {
 public:
  SelfAttention(const Graph& graph, const Variable& qkv, Tensor probabilities, std::int64_t heads)
      : OperationNode("SelfAttention", graph, {qkv.node}),
        qkv_(qkv.data),
        probabilities_(std::move(probabilities)),
        heads_(heads) {}

 protected:
  std::vector<Tensor> gradients(Tensor grad_output) override {
    Tensor grad_qkv = qkv_.empty_like();
    charge_flops(2 * attention_flops(qkv_));
    grad_output.device().kernels().attention_backward(grad_qkv, grad_output, qkv_, probabilities_,
                                                      heads_);
    return {std::move(grad_qkv)};
  }

 private:
  Tensor qkv_, probabilities_;
  std::int64_t heads_;
};

}  // namespace

Variable self_attention(Graph& graph, const Variable& qkv, std::int64_t heads) {
  const Shape& shape = qkv.data.shape();
  if (shape.size() != 3 || heads <= 0 || shape[2] % (3 * heads) != 0) {
    refuse_inputs("self_attention", {qkv.data},
                  "it needs qkv[batch, seq, 3 d] with a d that is a multiple of the " +
                      std::to_string(heads) + " heads");
  }
  Device& device = qkv.data.device();
  const DType dtype = qkv.data.dtype();
  Tensor context = Tensor::empty({shape[0], shape[1], shape[2] / 3}, dtype, device);
  Tensor probabilities = Tensor::empty({shape[0], heads, shape[1], shape[1]}, dtype, device);
  graph.clock().charge_flops(attention_flops(qkv.data));
  device.kernels().attention_forward(context, probabilities, qkv.data, heads);
  return graph.record(std::move(context),
                      std::make_shared<SelfAttention>(graph, qkv, std::move(probabilities), heads));
}

Variable multi_head_attention(Graph& graph, const Variable& x,
                              const MultiHeadAttentionParameters& parameters, std::int64_t heads) {
  const Variable qkv = linear(graph, x, parameters.in_proj_weight, parameters.in_proj_bias);
  const Variable context = self_attention(graph, qkv, heads);
  return linear(graph, context, parameters.out_proj_weight, parameters.out_proj_bias);
}

}  // namespace gradsync::ops
