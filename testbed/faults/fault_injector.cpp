#include "gradsync/testbed/faults/fault_injector.hpp"

#include <algorithm>
#include <csignal>

#include <fmt/format.h>

#include "gradsync/core/error.hpp"
#include "gradsync/testbed/faults/faulted_model.hpp"

namespace gradsync {
namespace {

Phase phase_of(FaultPoint point) {
  switch (point) {
    case FaultPoint::kInit:
      return Phase::kInit;
    case FaultPoint::kData:
      return Phase::kData;
    case FaultPoint::kForward:
      return Phase::kForward;
    case FaultPoint::kBackward:
      return Phase::kBackward;
    case FaultPoint::kOptimizer:
      return Phase::kOptimizer;
    case FaultPoint::kEvaluation:
      return Phase::kEvaluation;
    case FaultPoint::kCheckpoint:
      return Phase::kCheckpoint;
    case FaultPoint::kStepEnd:
    case FaultPoint::kEpochEnd:
    case FaultPoint::kTrainingEnd:
    case FaultPoint::kCleanUp:
      break;
  }
  return Phase::kUser;
}

bool is_in_loop(FaultPoint point) {
  return point != FaultPoint::kInit && point != FaultPoint::kEpochEnd &&
         point != FaultPoint::kTrainingEnd;
}

int signal_number(const std::string& name) {
  if (name == "SIGSEGV") return SIGSEGV;
  if (name == "SIGABRT") return SIGABRT;
  if (name == "SIGTERM") return SIGTERM;
  if (name == "SIGSTOP") return SIGSTOP;
  return SIGKILL;
}

bool is_event(FaultKind kind) {
  switch (kind) {
    case FaultKind::kSkip:
    case FaultKind::kThrow:
    case FaultKind::kExit:
    case FaultKind::kKill:
    case FaultKind::kDelay:
    case FaultKind::kStall:
    case FaultKind::kCollective:
    case FaultKind::kEvaluate:
    case FaultKind::kGroup:
      return true;
    default:
      return false;
  }
}

std::string place(const FaultInjector::Position& position, Phase phase) {
  if (position.step < 0) return to_string(phase);
  return fmt::format("step {} (epoch {}) {}", position.step, position.epoch, to_string(phase));
}

}  // namespace

FaultInjector::FaultInjector(const std::vector<FaultSpec>& faults, Rank rank)
    : rank_(std::move(rank)), armed_(std::make_shared<std::vector<std::string>>()) {
  for (const FaultSpec& fault : faults) {
    if (concerns(fault, rank_.group->rank())) faults_.push_back(fault);
  }
}

void FaultInjector::happen(FaultPoint point, const Position& position) {
  std::optional<Error> in_handler;
  for (const FaultSpec& fault : faults_) {
    if (!is_event(fault.kind) || fault.at != point) continue;
    if (is_in_loop(point) && (!covers(fault, position.step) || position.micro_step > 0)) continue;
    if (fault.kind == FaultKind::kThrow && fault.handler) {
      in_handler = error_of(fault, position, phase_of(point));
      rank_.raised(fault.message);
    } else {
      happen(fault, position, phase_of(point));
    }
  }
  if (in_handler) throw Error(*in_handler);
}

Error FaultInjector::error_of(const FaultSpec& fault, const Position& position, Phase phase) const {
  return Error(ErrorCode::kInternal, fmt::format("rank {}, {}: {}", rank_.group->rank(),
                                                 place(position, phase), fault.message));
}

void FaultInjector::happen_after_step(const Position& position) {
  for (const WorkPtr& work : std::exchange(in_flight_, {})) work->wait();
  for (const FaultSpec& fault : faults_) {
    const bool after = fault.at == FaultPoint::kEvaluation || fault.at == FaultPoint::kCheckpoint ||
                       fault.at == FaultPoint::kStepEnd;
    if (!is_event(fault.kind) || !after || !covers(fault, position.step)) continue;
    rank_.enter(phase_of(fault.at));
    happen(fault, position, phase_of(fault.at));
  }
}

void FaultInjector::happen(const FaultSpec& fault, const Position& position, Phase phase) {
  switch (fault.kind) {
    case FaultKind::kSkip:
      throw InterruptedStep{fault.message};
    case FaultKind::kThrow:
      if (fault.caught) throw InterruptedStep{fault.message};
      throw error_of(fault, position, phase);
    case FaultKind::kExit:
      rank_.end_process({.exit_code = static_cast<int>(fault.code)});
      return;
    case FaultKind::kKill:
      rank_.end_process({.signal = signal_number(fault.signal)});
      return;
    case FaultKind::kDelay:
      rank_.clock->sleep(fault.duration);
      return;
    case FaultKind::kStall:
      rank_.group->stall();
      return;
    case FaultKind::kCollective:
      communicate(fault, position, phase);
      return;
    case FaultKind::kEvaluate:
      rank_.evaluate(fault.through_ddp);
      return;
    case FaultKind::kGroup:
      make_group(fault);
      return;
    default:
      return;  // a condition: asked for where it matters
  }
}

ProcessGroup& FaultInjector::group_of(const FaultSpec& fault) const {
  if (fault.group.empty()) return *rank_.group;
  const auto found = groups_.find(fault.group);
  if (found != groups_.end()) return *found->second;
  throw Error(
      ErrorCode::kInvalidScenario,
      fmt::format("rank {}: a collective in the group \"{}\", which has no such member; add "
                  "a fault of kind group before it",
                  rank_.group->rank(), fault.group));
}

void FaultInjector::communicate(const FaultSpec& fault, const Position& position, Phase phase) {
  ProcessGroup& group = group_of(fault);
  CollectiveOptions options;
  options.label.epoch = position.epoch;
  options.label.step = position.step;
  options.label.micro_step = std::max<std::int64_t>(position.micro_step, 0);
  options.label.phase = phase;
  options.label.what = fault.name.empty() ? std::string("the program's own") : fault.name;
  options.label.site = fault.site;
  const DType dtype = parse_dtype(fault.dtype);
  const auto zeros = [&](Shape shape) {
    return Tensor::zeros(std::move(shape), dtype, *rank_.device);
  };
  WorkPtr work;
  switch (fault.op) {
    case OpType::kAllreduce:
      work = group.allreduce(zeros({fault.elements}), fault.reduce_op, options);
      break;
    case OpType::kBroadcast:
      work = group.broadcast(zeros({fault.elements}), static_cast<int>(fault.root), options);
      break;
    case OpType::kAllgather:
      work =
          group.allgather(zeros({group.size(), fault.elements}), zeros({fault.elements}), options);
      break;
    case OpType::kBarrier:
      work = group.barrier(options);
      break;
  }
  if (fault.wait) {
    work->wait();
  } else {
    in_flight_.push_back(std::move(work));
  }
}

/// torch.distributed.new_group: a call that all ranks have to make, members or not, and after which
/// the members have a group.
void FaultInjector::make_group(const FaultSpec& fault) {
  std::vector<int> all(static_cast<std::size_t>(rank_.group->size()));
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int>(i);
  // Kept: a rank that is first must not close its connections while others still make theirs.
  const std::string creation = "new_group " + fault.name;
  groups_[creation] = rank_.group->split(creation, all);
  const std::vector<int> members(fault.members.begin(), fault.members.end());
  if (std::find(members.begin(), members.end(), rank_.group->rank()) != members.end()) {
    groups_[fault.name] = rank_.group->split(fault.name, members);
  }
}

const FaultSpec* FaultInjector::leaves_loop(std::int64_t step) const {
  const auto found = std::find_if(faults_.begin(), faults_.end(), [&](const FaultSpec& fault) {
    return fault.kind == FaultKind::kLeaveLoop && step >= fault.step;
  });
  return found == faults_.end() ? nullptr : &*found;
}

const FaultSpec* FaultInjector::find(FaultKind kind, std::int64_t step) const {
  const auto found = std::find_if(faults_.begin(), faults_.end(), [&](const FaultSpec& fault) {
    return fault.kind == kind && covers(fault, step);
  });
  return found == faults_.end() ? nullptr : &*found;
}

SamplerOptions FaultInjector::sampler_options(SamplerOptions options) const {
  const FaultSpec* fault = find(FaultKind::kSampler);
  if (fault != nullptr && fault->seed) options.seed = *fault->seed;
  return options;
}

int FaultInjector::sampler_rank(int rank) const {
  const FaultSpec* fault = find(FaultKind::kSampler);
  return fault != nullptr && fault->shard_of ? static_cast<int>(*fault->shard_of) : rank;
}

bool FaultInjector::sets_epoch(bool set_epoch) const {
  const FaultSpec* fault = find(FaultKind::kSampler);
  return fault != nullptr ? fault->set_epoch.value_or(set_epoch) : set_epoch;
}

std::int64_t FaultInjector::first_step() const {
  const FaultSpec* fault = find(FaultKind::kResume);
  return fault != nullptr ? fault->to_step : 0;
}

bool FaultInjector::stays_local(const Position& position, bool local) const {
  for (const FaultSpec& fault : faults_) {
    if (fault.kind != FaultKind::kNoSync || !covers(fault, position.step)) continue;
    if (fault.micro_step.value_or(position.micro_step) == position.micro_step) return !fault.sync;
  }
  return local;
}

double FaultInjector::loss_scale(std::int64_t step) const {
  const FaultSpec* fault = find(FaultKind::kLossScale, step);
  return fault != nullptr ? fault->value : 1;
}

std::unique_ptr<Model> FaultInjector::model_for_ddp(Model& model) const {
  return std::make_unique<FaultedModel>(model, faults_, *rank_.device);
}

std::vector<const Parameter*> FaultInjector::unused_parameters(const Model& model,
                                                               std::int64_t step) const {
  std::vector<const Parameter*> unused;
  for (const FaultSpec& fault : faults_) {
    if (fault.kind != FaultKind::kUnused || !covers(fault, step)) continue;
    for (const ParameterPtr& parameter : meant_parameters(model.parameters(), fault)) {
      unused.push_back(parameter.get());
    }
  }
  return unused;
}

void FaultInjector::watch_gradients(const Model& model) {
  for (const FaultSpec& fault : faults_) {
    if (fault.kind != FaultKind::kReadyTwice) continue;
    for (const ParameterPtr& parameter : meant_parameters(model.parameters(), fault)) {
      parameter->add_gradient_hook([armed = armed_](Parameter& of, BackwardPass& pass) {
        if (std::erase(*armed, of.name()) > 0) of.accumulate(Tensor{}, pass);
      });
    }
  }
}

void FaultInjector::arm(const Position& position) {
  armed_->clear();
  for (const FaultSpec& fault : faults_) {
    if (fault.kind != FaultKind::kReadyTwice || !covers(fault, position.step)) continue;
    if (fault.micro_step.value_or(position.micro_step) != position.micro_step) continue;
    armed_->insert(armed_->end(), fault.parameters.begin(), fault.parameters.end());
  }
}

}  // namespace gradsync
