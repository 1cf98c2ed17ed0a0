#include "gradsync/testbed/faults/fault_observer.hpp"

#include "gradsync/testbed/faults/faulted_model.hpp"

namespace gradsync {

FaultObserver::FaultObserver(const Rank& rank)
    : rank_(rank), armed_(std::make_shared<std::vector<std::string>>()) {
  watch_gradients();
}

void FaultObserver::before_data(const LoopPosition& at) {
  if (at.micro_step == 0 && !rank_.faults.empty()) {
    rank_.graph.leave_out(unused_parameters(at.step));
  }
  rank_.events.happen(FaultPoint::kData, at);
}

void FaultObserver::after_data(const LoopPosition&, const Batch& batch) {
  if (!rank_.faults.empty()) last_batch_ = batch;
}

void FaultObserver::before_forward(const LoopPosition& at) {
  rank_.events.happen(FaultPoint::kForward, at);
}

void FaultObserver::before_backward(const LoopPosition& at) {
  rank_.events.happen(FaultPoint::kBackward, at);
  arm(at);
}

void FaultObserver::after_backward(const LoopPosition& at, bool last) {
  if (last || rank_.faults.find<ClipInsideAccumulationFault>(at.step) == nullptr) return;
  rank_.scaler.unscale_inside_accumulation(at.step);
  rank_.clipper.clip(at);
}

void FaultObserver::before_optimizer(const LoopPosition& at) {
  rank_.events.happen(FaultPoint::kOptimizer, at);
}

void FaultObserver::after_step(const LoopPosition& at) {
  rank_.events.happen_after_step(at);
}

void FaultObserver::after_epoch(const LoopPosition& last) {
  rank_.events.happen_outside_steps(FaultPoint::kEpochEnd, last);
}

void FaultObserver::after_training(const LoopPosition& last) {
  rank_.events.happen_outside_steps(FaultPoint::kTrainingEnd, last);
}

void FaultObserver::evaluate(bool through_ddp) {
  const NoGradGuard no_grad(rank_.graph);
  if (through_ddp) {
    rank_.ddp.forward(rank_.ddp_model, last_batch_, rank_.graph);
  } else {
    rank_.ddp_model.forward(last_batch_, rank_.graph);
  }
}

std::vector<const Parameter*> FaultObserver::unused_parameters(std::int64_t step) const {
  std::vector<const Parameter*> unused;
  for (const FaultSpec& fault : rank_.faults) {
    const auto* branch = fault.as<UnusedFault>();
    if (branch == nullptr || !covers(*branch, step)) continue;
    for (const ParameterPtr& parameter : meant_parameters(rank_.model.parameters(), *branch)) {
      unused.push_back(parameter.get());
    }
  }
  return unused;
}

void FaultObserver::watch_gradients() {
  for (const FaultSpec& fault : rank_.faults) {
    const auto* twice = fault.as<ReadyTwiceFault>();
    if (twice == nullptr) continue;
    for (const ParameterPtr& parameter : meant_parameters(rank_.model.parameters(), *twice)) {
      parameter->add_gradient_hook([armed = armed_](Parameter& of, BackwardPass& pass) {
        if (std::erase(*armed, of.name()) > 0) of.accumulate(Tensor{}, pass);
      });
    }
  }
}

/// Selects the parameters whose hooks fire twice in the next backward pass.
void FaultObserver::arm(const LoopPosition& at) {
  armed_->clear();
  for (const FaultSpec& fault : rank_.faults) {
    const auto* twice = fault.as<ReadyTwiceFault>();
    if (twice == nullptr || !covers(*twice, at.step)) continue;
    if (twice->micro_step.value_or(at.micro_step) != at.micro_step) continue;
    armed_->insert(armed_->end(), twice->parameters.begin(), twice->parameters.end());
  }
}

}  // namespace gradsync
