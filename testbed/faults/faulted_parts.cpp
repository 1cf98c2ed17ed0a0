#include "gradsync/testbed/faults/faulted_parts.hpp"

#include <cmath>
#include <limits>

#include "gradsync/ddp/control_tensor.hpp"
#include "gradsync/optim/clip_grad_norm.hpp"

namespace gradsync {

double FaultedScaler::scale(std::int64_t step) const {
  const auto* fault = faults_->find<LossScaleFault>(step);
  return fault != nullptr ? fault->value : GradientScaler::scale(step);
}

bool FaultedScaler::unscales_late(std::int64_t step) const {
  return faults_->find<ClipBeforeUnscaleFault>(step) != nullptr;
}

void FaultedScaler::unscale(std::int64_t step) {
  if (!unscales_late(step)) GradientScaler::unscale(step);
}

void FaultedScaler::step(Optimizer& optimizer, std::int64_t step) {
  if (unscales_late(step)) divide_gradients(step);
  GradientScaler::step(optimizer, step);
}

std::optional<Clipping> FaultedClipper::clip(const LoopPosition& at) {
  if (!options().max_norm) return std::nullopt;
  const auto* own_norm = faults_->find<ClipFault>(at.step);
  const double max_norm = own_norm != nullptr ? own_norm->value : *options().max_norm;
  if (faults_->find<NormReducedAgainFault>(at.step) != nullptr) {
    return clip_by_sum_over_ranks(at, max_norm);
  }
  return clip_to(max_norm);
}

/// Reproduces the bug of clipping reduced gradients as if they were shards of a gradient.
Clipping FaultedClipper::clip_by_sum_over_ranks(const LoopPosition& at, double max_norm) {
  constexpr double kNoLimit = std::numeric_limits<double>::infinity();
  const Tensor own = clip_grad_norm_on_device(parameters(), kNoLimit);
  Clipping clipping;
  clipping.max_norm = max_norm;
  if (own.defined()) clipping.norm = device_->read(own);
  const double norm = clipping.norm != nullptr ? clipping.norm->value() : 0;
  const Tensor square = control_tensor<double>({norm * norm}, DType::kFloat64, *device_);
  const LoopPosition step{at.epoch, at.step};
  group_
      ->allreduce(square, ReduceOp::kSum, step.options(Phase::kOptimizer, "squared gradient norm"))
      ->wait();
  clipping.other_norm = std::sqrt(control_values<double>(square).front());
  scale_gradients(parameters(), clip_coefficient(*clipping.other_norm, max_norm));
  return clipping;
}

double FaultedRates::base_rate(std::size_t group, std::int64_t step) const {
  const auto* fault = faults_->find<LearningRateFault>(step);
  return fault != nullptr ? fault->value : LearningRates::base_rate(group, step);
}

bool FaultedPolicy::reduces(const LoopPosition& at, bool by_default) const {
  for (const FaultSpec& fault : *faults_) {
    const auto* no_sync = fault.as<NoSyncFault>();
    if (no_sync == nullptr || !covers(*no_sync, at.step)) continue;
    if (no_sync->micro_step.value_or(at.micro_step) == at.micro_step) return no_sync->sync;
  }
  return by_default;
}

std::optional<std::string> FaultedPolicy::leaves(std::int64_t step) const {
  for (const FaultSpec& fault : *faults_) {
    const auto* leave = fault.as<LeaveLoopFault>();
    if (leave != nullptr && step >= leave->step) return leave->message;
  }
  return std::nullopt;
}

}  // namespace gradsync
