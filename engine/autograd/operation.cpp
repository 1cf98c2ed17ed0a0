#include "gradsync/autograd/operation.hpp"

#include "gradsync/core/error.hpp"

namespace gradsync {

std::vector<Tensor> OperationNode::backward(Tensor grad_output, BackwardPass&) {
  if (!grad_output.defined()) return std::vector<Tensor>(parents().size());
  return gradients(std::move(grad_output));
}

void refuse_inputs(const char* operation, std::initializer_list<Tensor> inputs,
                   const std::string& reason) {
  std::string text = std::string(operation) + " cannot take ";
  const char* separator = "";
  for (const Tensor& input : inputs) {
    text += separator;
    text += input.defined() ? std::string(to_string(input.dtype())) + to_string(input.shape())
                            : "an undefined tensor";
    separator = " and ";
  }
  throw Error(ErrorCode::kMisuse, text + ": " + reason);
}

Shape with_last_dimension(Shape shape, std::int64_t last) {
  shape.back() = last;
  return shape;
}

}  // namespace gradsync
