#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gradsync/models/model.hpp"
#include "gradsync/testbed/faults/rank_faults.hpp"

namespace gradsync {

/// A model as DDP is shown it: what it computes is that of the model inside, but parameters may be
/// in another order, of another shape, named otherwise, more of them, or be the ones that were
/// there before they were replaced; and the loss of a step may be NaN, and with it every gradient.
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
  void apply(const Kind&) {}  // what DDP is shown is as it is
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

/// The parameters that one of the patterns means, in the order of `parameters`; all where there is
/// no pattern. `kind` is the fault's name, for the error.
std::vector<ParameterPtr> meant_parameters(const std::vector<ParameterPtr>& parameters,
                                           const std::vector<std::string>& patterns,
                                           const char* kind);

/// Those that a fault means.
template <class Kind>
std::vector<ParameterPtr> meant_parameters(const std::vector<ParameterPtr>& parameters,
                                           const Kind& fault) {
  return meant_parameters(parameters, fault.parameters, Kind::kName);
}

}  // namespace gradsync
