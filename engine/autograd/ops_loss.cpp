#include "gradsync/autograd/operation.hpp"
#include "gradsync/autograd/ops.hpp"

namespace gradsync::ops {
namespace {

class CrossEntropy final : public OperationNode {
 public:
  CrossEntropy(const Graph& graph, const Variable& logits, Tensor targets, Tensor log_normalizer)
      : OperationNode("CrossEntropy", graph, {logits.node}),
        logits_(logits.data),
        targets_(std::move(targets)),
        log_normalizer_(std::move(log_normalizer)) {}

 protected:
  std::vector<Tensor> gradients(Tensor grad_output) override {
    Tensor grad_logits = logits_.empty_like();
    grad_output.device().kernels().cross_entropy_backward(grad_logits, grad_output, logits_,
                                                          log_normalizer_, targets_);
    return {std::move(grad_logits)};
  }

 private:
  Tensor logits_, targets_, log_normalizer_;
};

}  // namespace

Variable cross_entropy(Graph& graph, const Variable& logits, const Tensor& targets) {
  const Shape& shape = logits.data.shape();
  if (shape.empty() || !targets.defined() || targets.dtype() != DType::kInt64 ||
      targets.shape() != Shape(shape.begin(), shape.end() - 1)) {
    refuse_inputs("cross_entropy", {logits.data, targets},
                  "it needs logits[..., classes] and int64 targets[...]");
  }
  Device& device = logits.data.device();
  Tensor loss = Tensor::empty({}, logits.data.dtype(), device);
  Tensor log_normalizer = Tensor::empty(targets.shape(), logits.data.dtype(), device);
  device.kernels().cross_entropy_forward(loss, log_normalizer, logits.data, targets);
  return graph.record(std::move(loss), std::make_shared<CrossEntropy>(graph, logits, targets,
                                                                      std::move(log_normalizer)));
}

}  // namespace gradsync::ops
