#include "gradsync/testbed/faults/faulted_model.hpp"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "gradsync/core/error.hpp"
#include "gradsync/core/name_pattern.hpp"

namespace gradsync {
namespace {

void fill_with_nan(Tensor& tensor) {
  tensor.device().fill(tensor, std::numeric_limits<double>::quiet_NaN());
}

/// A scalar that is NaN whatever its input is, and whose gradient is NaN as well.
class NanNode final : public Node {
 public:
  explicit NanNode(NodePtr input) : Node("Nan", {std::move(input)}) {}

  std::vector<Tensor> backward(Tensor grad_output, BackwardPass&) override {
    Tensor gradient = grad_output.empty_like();
    fill_with_nan(gradient);
    return {std::move(gradient)};
  }
};

}  // namespace

std::vector<ParameterPtr> meant_parameters(const std::vector<ParameterPtr>& parameters,
                                           const FaultSpec& fault) {
  if (fault.parameters.empty()) return parameters;
  std::vector<ParameterPtr> meant;
  for (const ParameterPtr& parameter : parameters) {
    if (std::any_of(fault.parameters.begin(), fault.parameters.end(),
                    [&](const auto& pattern) { return matches(pattern, parameter->name()); })) {
      meant.push_back(parameter);
    }
  }
  if (meant.empty()) {
    throw Error(
        ErrorCode::kInvalidConfig,
        fmt::format("a fault of kind {} names the parameter {}, which the model does not "
                    "have; its first is {}",
                    to_string(fault.kind), fault.parameters.front(), parameters.front()->name()));
  }
  return meant;
}

FaultedModel::FaultedModel(Model& model, const RankFaults& faults, Device& device)
    : model_(&model), faults_(&faults), parameters_(model.parameters()) {
  for (const FaultSpec& fault : faults) apply(fault, device);
}

std::vector<Variable> FaultedModel::forward(const Batch& batch, Graph& graph) {
  std::vector<Variable> outputs = model_->forward(batch, graph);
  if (faults_->find(FaultKind::kNan, batch.global_step) != nullptr) {
    Variable& loss = outputs.front();
    Tensor nan = loss.data.empty_like();
    fill_with_nan(nan);
    loss = graph.record(std::move(nan), std::make_shared<NanNode>(std::move(loss.node)));
  }
  return outputs;
}

void FaultedModel::apply(const FaultSpec& fault, Device& device) {
  const auto position_of = [&](const ParameterPtr& parameter) {
    return std::find(parameters_.begin(), parameters_.end(), parameter);
  };
  const auto stand_in = [&](const ParameterPtr& parameter, std::string name, const Shape& shape) {
    *position_of(parameter) = std::make_shared<Parameter>(
        std::move(name), Tensor::zeros(shape, parameter->data.dtype(), device));
  };
  switch (fault.kind) {
    case FaultKind::kOrder: {
      const std::vector<ParameterPtr> meant = meant_parameters(parameters_, fault);
      std::vector<std::vector<ParameterPtr>::iterator> places;
      for (const ParameterPtr& parameter : meant) places.push_back(position_of(parameter));
      for (std::size_t i = 0; i < meant.size(); ++i) *places[meant.size() - 1 - i] = meant[i];
      return;
    }
    case FaultKind::kShape:
      for (const ParameterPtr& parameter : meant_parameters(parameters_, fault)) {
        stand_in(parameter, parameter->name(), Shape(fault.shape.begin(), fault.shape.end()));
      }
      return;
    case FaultKind::kRename:
      for (const ParameterPtr& parameter : meant_parameters(parameters_, fault)) {
        stand_in(parameter, fault.name + parameter->name(), parameter->data.shape());
      }
      return;
    case FaultKind::kReplace:
      for (const ParameterPtr& parameter : meant_parameters(parameters_, fault)) {
        stand_in(parameter, parameter->name(), parameter->data.shape());
      }
      return;
    case FaultKind::kAdd:
      for (const std::string& name : fault.parameters) {
        parameters_.push_back(std::make_shared<Parameter>(
            name, Tensor::zeros(Shape(fault.shape.begin(), fault.shape.end()),
                                parameters_.front()->data.dtype(), device)));
      }
      return;
    default:
      return;
  }
}

}  // namespace gradsync
