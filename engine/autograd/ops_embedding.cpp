#include "gradsync/autograd/operation.hpp"
#include "gradsync/autograd/ops.hpp"

namespace gradsync::ops {
namespace {

class Embedding final : public OperationNode {
 public:
  Embedding(const Graph& graph, Tensor ids, const Variable& weight)
      : OperationNode("Embedding", graph, {weight.node}),
        ids_(std::move(ids)),
        weight_(weight.data) {}

 protected:
  std::vector<Tensor> gradients(Tensor grad_output) override {
    Tensor grad_weight = gradient_like(0, weight_);
    grad_output.device().kernels().embedding_backward(grad_weight, grad_output, ids_);
    return {std::move(grad_weight)};
  }

 private:
  Tensor ids_, weight_;
};

}  // namespace

Variable embedding(Graph& graph, const Tensor& ids, const Variable& weight) {
  if (!ids.defined() || ids.dtype() != DType::kInt64 || weight.data.shape().size() != 2) {
    refuse_inputs("embedding", {ids, weight.data}, "it needs int64 ids and weight[count, d]");
  }
  Device& device = weight.data.device();
  Shape shape = ids.shape();
  shape.push_back(weight.data.shape()[1]);
  Tensor out = Tensor::empty(std::move(shape), weight.data.dtype(), device);
  device.kernels().embedding_forward(out, weight.data, ids);
  return graph.record(std::move(out), std::make_shared<Embedding>(graph, ids, weight));
}

}  // namespace gradsync::ops
