#include "gradsync/testbed/faults/fault_events.hpp"

#include <algorithm>
#include <csignal>

#include <fmt/format.h>

#include "gradsync/core/error.hpp"
#include "gradsync/testbed/loop/loop_observer.hpp"

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

std::string place(const LoopPosition& at, Phase phase) {
  if (at.step < 0) return to_string(phase);
  return fmt::format("step {} (epoch {}) {}", at.step, at.epoch, to_string(phase));
}

}  // namespace

void FaultEvents::happen(FaultPoint point, const LoopPosition& at) {
  std::optional<Error> in_handler;
  for (const FaultSpec& fault : *faults_) {
    if (!is_event(fault.kind) || fault.at != point) continue;
    if (is_in_loop(point) && (!covers(fault, at.step) || at.micro_step > 0)) continue;
    if (fault.kind == FaultKind::kThrow && fault.handler) {
      in_handler = error_of(fault, at, phase_of(point));
      rank_.raised(fault.message);
    } else {
      happen(fault, at, phase_of(point));
    }
  }
  if (in_handler) throw Error(*in_handler);
}

Error FaultEvents::error_of(const FaultSpec& fault, const LoopPosition& at, Phase phase) const {
  return Error(ErrorCode::kInternal, fmt::format("rank {}, {}: {}", rank_.group->rank(),
                                                 place(at, phase), fault.message));
}

void FaultEvents::happen_after_step(const LoopPosition& at) {
  for (const WorkPtr& work : std::exchange(in_flight_, {})) work->wait();
  for (const FaultSpec& fault : *faults_) {
    const bool after = fault.at == FaultPoint::kEvaluation || fault.at == FaultPoint::kCheckpoint ||
                       fault.at == FaultPoint::kStepEnd;
    if (!is_event(fault.kind) || !after || !covers(fault, at.step)) continue;
    rank_.enter(phase_of(fault.at));
    happen(fault, at, phase_of(fault.at));
  }
}

void FaultEvents::happen_outside_steps(FaultPoint point, const LoopPosition& last) {
  if (faults_->empty()) return;
  rank_.enter(Phase::kUser);
  happen(point, last);
}

void FaultEvents::happen(const FaultSpec& fault, const LoopPosition& at, Phase phase) {
  switch (fault.kind) {
    case FaultKind::kSkip:
      throw SkippedStep{fault.message};
    case FaultKind::kThrow:
      if (fault.caught) throw SkippedStep{fault.message};
      throw error_of(fault, at, phase);
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
      communicate(fault, at, phase);
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

ProcessGroup& FaultEvents::group_of(const FaultSpec& fault) const {
  if (fault.group.empty()) return *rank_.group;
  const auto found = groups_.find(fault.group);
  if (found != groups_.end()) return *found->second;
  throw Error(
      ErrorCode::kInvalidConfig,
      fmt::format("rank {}: a collective in the group \"{}\", which has no such member; add "
                  "a fault of kind group before it",
                  rank_.group->rank(), fault.group));
}

void FaultEvents::communicate(const FaultSpec& fault, const LoopPosition& at, Phase phase) {
  ProcessGroup& group = group_of(fault);
  CollectiveOptions options =
      at.options(phase, fault.name.empty() ? std::string("the program's own") : fault.name);
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
void FaultEvents::make_group(const FaultSpec& fault) {
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

}  // namespace gradsync
