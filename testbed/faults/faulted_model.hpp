#pragma once

#include <memory>
#include <vector>

#include "gradsync/models/model.hpp"
#include "gradsync/testbed/faults/rank_faults.hpp"

namespace gradsync {

/// A model as DDP is shown it: what it computes is that of the model inside, but parameters may be
/// in another order, of another shape, named otherwise, more of them, or be the ones that were
/// there before they were replaced; and the loss of a step may be NaN, and with it every gradient.
class FaultedModel final : public Model {
 public:
  /// `model` and `faults` must outlive it. Throws Error(kInvalidConfig) for a parameter that the
  /// model does not have.
  FaultedModel(Model& model, const RankFaults& faults, Device& device);

  const std::vector<ParameterPtr>& parameters() const override { return parameters_; }
  const std::vector<BufferPtr>& buffers() const override { return model_->buffers(); }
  std::vector<Variable> forward(const Batch& batch, Graph& graph) override;
  Seconds replayed_optimizer_time() const override { return model_->replayed_optimizer_time(); }

 private:
  void apply(const FaultSpec& fault, Device& device);

  Model* model_;
  const RankFaults* faults_;
  std::vector<ParameterPtr> parameters_;
};

/// The parameters that a fault means, in the order of `parameters`; all where it names none.
std::vector<ParameterPtr> meant_parameters(const std::vector<ParameterPtr>& parameters,
                                           const FaultSpec& fault);

}  // namespace gradsync
