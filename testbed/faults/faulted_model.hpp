#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gradsync/models/model.hpp"
#include "gradsync/testbed/faults/rank_faults.hpp"

namespace gradsync {

/// A model as DDP sees it. It computes what the wrapped model computes, but its parameters may have
/// another order, shape or name, there may be additional ones, or they may be those from before a
/// replacement; and the loss of a step, and with it every gradient, may be NaN.
class FaultedModel final : public Model {
 public:
  /// All arguments must outlive it. Throws Error(kInvalidConfig) for a parameter that the
  /// model does not have.
  FaultedModel(Model& model, const RankFaults& faults, Device& device);

  const std::vector<ParameterPtr>& parameters() const override { return parameters_; }
  const std::vector<BufferPtr>& buffers() const override { return model_->buffers(); }
  std::vector<Variable> forward(const Batch& batch, Graph& graph) override;
  Seconds replayed_optimizer_time() const override { return model_->replayed_optimizer_time(); }

 private:
  template <class Kind>
  void apply(const Kind&) {}  // does not change what DDP sees
  void apply(const OrderFault& fault);
  void apply(const ShapeFault& fault);
  void apply(const RenameFault& fault);
  void apply(const ReplaceFault& fault);
  void apply(const AddFault& fault);
  void stand_in(const ParameterPtr& parameter, std::string name, const Shape& shape);

  Model* model_;
  const RankFaults* faults_;
  Device* device_;
  std::vector<ParameterPtr> parameters_;
};

/// The parameters that match one of the patterns, in the order of `parameters`; all if there are no
/// patterns. `kind` is the fault's name, for errors.
std::vector<ParameterPtr> meant_parameters(const std::vector<ParameterPtr>& parameters,
                                           const std::vector<std::string>& patterns,
                                           const char* kind);

/// The parameters that a fault affects.
template <class Kind>
std::vector<ParameterPtr> meant_parameters(const std::vector<ParameterPtr>& parameters,
                                           const Kind& fault) {
  return meant_parameters(parameters, fault.parameters, Kind::kName);
}

}  // namespace gradsync
