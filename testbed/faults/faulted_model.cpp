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

/// A scalar that is NaN for any input, with a NaN gradient.
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
                                           const std::vector<std::string>& patterns,
                                           const char* kind) {
  if (patterns.empty()) return parameters;
  std::vector<ParameterPtr> meant;
  for (const ParameterPtr& parameter : parameters) {
    if (std::any_of(patterns.begin(), patterns.end(),
                    [&](const auto& pattern) { return matches(pattern, parameter->name()); })) {
      meant.push_back(parameter);
    }
  }
  if (meant.empty()) {
    throw Error(ErrorCode::kInvalidConfig,
                fmt::format("a fault of kind {} names the parameter {}, which the model does not "
                            "have; its first is {}",
                            kind, patterns.front(), parameters.front()->name()));
  }
  return meant;
}

FaultedModel::FaultedModel(Model& model, const RankFaults& faults, Device& device)
    : model_(&model), faults_(&faults), device_(&device), parameters_(model.parameters()) {
  for (const FaultSpec& fault : faults) {
    std::visit([this](const auto& kind) { apply(kind); }, fault.kind);
  }
}

std::vector<Variable> FaultedModel::forward(const Batch& batch, Graph& graph) {
  std::vector<Variable> outputs = model_->forward(batch, graph);
  if (faults_->find<NanFault>(batch.global_step) != nullptr) {
    Variable& loss = outputs.front();
    Tensor nan = loss.data.empty_like();
    fill_with_nan(nan);
    loss = graph.record(std::move(nan), std::make_shared<NanNode>(std::move(loss.node)));
  }
  return outputs;
}

/// Shows DDP zeros with this name and shape instead of `parameter`.
void FaultedModel::stand_in(const ParameterPtr& parameter, std::string name, const Shape& shape) {
  *std::find(parameters_.begin(), parameters_.end(), parameter) = std::make_shared<Parameter>(
      std::move(name), Tensor::zeros(shape, parameter->data.dtype(), *device_));
}

void FaultedModel::apply(const OrderFault& fault) {
  const std::vector<ParameterPtr> meant = meant_parameters(parameters_, fault);
  std::vector<std::vector<ParameterPtr>::iterator> places;
  for (const ParameterPtr& parameter : meant) {
    places.push_back(std::find(parameters_.begin(), parameters_.end(), parameter));
  }
  for (std::size_t i = 0; i < meant.size(); ++i) *places[meant.size() - 1 - i] = meant[i];
}

void FaultedModel::apply(const ShapeFault& fault) {
  const Shape shape(fault.shape.begin(), fault.shape.end());
  for (const ParameterPtr& parameter : meant_parameters(parameters_, fault)) {
    stand_in(parameter, parameter->name(), shape);
  }
}

void FaultedModel::apply(const RenameFault& fault) {
  const std::vector<ParameterPtr> all = parameters_;
  for (const ParameterPtr& parameter : all) {
    stand_in(parameter, fault.name + parameter->name(), parameter->data.shape());
  }
}

void FaultedModel::apply(const ReplaceFault& fault) {
  for (const ParameterPtr& parameter : meant_parameters(parameters_, fault)) {
    stand_in(parameter, parameter->name(), parameter->data.shape());
  }
}

void FaultedModel::apply(const AddFault& fault) {
  const Shape shape(fault.shape.begin(), fault.shape.end());
  for (const std::string& name : fault.parameters) {
    parameters_.push_back(std::make_shared<Parameter>(
        name, Tensor::zeros(shape, parameters_.front()->data.dtype(), *device_)));
  }
}

}  // namespace gradsync
