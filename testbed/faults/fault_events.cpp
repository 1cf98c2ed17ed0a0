#include "gradsync/testbed/faults/fault_events.hpp"

#include <algorithm>
#include <csignal>
#include <type_traits>
#include <utility>

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

bool is_after_step(FaultPoint point) {
  return point == FaultPoint::kEvaluation || point == FaultPoint::kCheckpoint ||
         point == FaultPoint::kStepEnd;
}

std::string text_of(const LoopPosition& at, Phase phase) {
  if (at.step < 0) return to_string(phase);
  return fmt::format("step {} (epoch {}) {}", at.step, at.epoch, to_string(phase));
}

}  // namespace

void FaultEvents::happen(FaultPoint point, const LoopPosition& at) {
  const Place place{at, phase_of(point)};
  std::optional<Error> in_handler;
  const auto happen_there = [&](const auto& event) {
    if constexpr (FaultEvent<std::remove_cvref_t<decltype(event)>>) {
      if (event.at != point) return;
      if (is_in_loop(point) && (!covers(event, at.step) || at.micro_step > 0)) return;
      if (std::optional<Error> error = taken_by_handler(event, place)) {
        in_handler = std::move(error);
      } else {
        happen(event, place);
      }
    }
  };
  for (const FaultSpec& fault : *faults_) std::visit(happen_there, fault.kind);
  if (in_handler) throw Error(*in_handler);
}

void FaultEvents::happen_after_step(const LoopPosition& at) {
  for (const WorkPtr& work : std::exchange(in_flight_, {})) work->wait();
  const auto happen_after = [&](const auto& event) {
    if constexpr (FaultEvent<std::remove_cvref_t<decltype(event)>>) {
      if (!is_after_step(event.at) || !covers(event, at.step)) return;
      const Place place{at, phase_of(event.at)};
      rank_.enter(place.phase);
      happen(event, place);
    }
  };
  for (const FaultSpec& fault : *faults_) std::visit(happen_after, fault.kind);
}

void FaultEvents::happen_outside_steps(FaultPoint point, const LoopPosition& last) {
  if (faults_->empty()) return;
  rank_.enter(Phase::kUser);
  happen(point, last);
}

void FaultEvents::happen(const SkipFault& skip, const Place&) {
  throw SkippedStep{skip.message};
}

void FaultEvents::happen(const ThrowFault& exception, const Place& place) {
  if (exception.caught) throw SkippedStep{exception.message};
  throw error_of(exception, place);
}

void FaultEvents::happen(const ExitFault& exit, const Place&) {
  rank_.end_process({.exit_code = static_cast<int>(exit.code)});
}

void FaultEvents::happen(const KillFault& kill, const Place&) {
  rank_.end_process({.signal = signal_number(kill.signal)});
}

void FaultEvents::happen(const DelayFault& delay, const Place&) {
  rank_.clock->sleep(delay.duration);
}

void FaultEvents::happen(const StallFault&, const Place&) {
  rank_.group->stall();
}

void FaultEvents::happen(const EvaluateFault& evaluation, const Place&) {
  rank_.evaluate(evaluation.through_ddp);
}

std::optional<Error> FaultEvents::taken_by_handler(const ThrowFault& exception,
                                                   const Place& place) {
  if (!exception.handler) return std::nullopt;
  rank_.raised(exception.message);
  return error_of(exception, place);
}

Error FaultEvents::error_of(const ThrowFault& exception, const Place& place) const {
  return Error(ErrorCode::kInternal,
               fmt::format("rank {}, {}: {}", rank_.group->rank(), text_of(place.at, place.phase),
                           exception.message));
}

ProcessGroup& FaultEvents::group_of(const CollectiveFault& call) const {
  if (call.group.empty()) return *rank_.group;
  const auto found = groups_.find(call.group);
  if (found != groups_.end()) return *found->second;
  throw Error(
      ErrorCode::kInvalidConfig,
      fmt::format("rank {}: a collective in the group \"{}\", which has no such member; add "
                  "a fault of kind group before it",
                  rank_.group->rank(), call.group));
}

void FaultEvents::happen(const CollectiveFault& call, const Place& place) {
  ProcessGroup& group = group_of(call);
  CollectiveOptions options = place.at.options(
      place.phase, call.name.empty() ? std::string("the program's own") : call.name);
  options.label.site = call.site;
  const DType dtype = parse_dtype(call.dtype);
  const auto zeros = [&](Shape shape) {
    return Tensor::zeros(std::move(shape), dtype, *rank_.device);
  };
  WorkPtr work;
  switch (call.op) {
    case OpType::kAllreduce:
      work = group.allreduce(zeros({call.elements}), call.reduce_op, options);
      break;
    case OpType::kBroadcast:
      work = group.broadcast(zeros({call.elements}), static_cast<int>(call.root), options);
      break;
    case OpType::kAllgather:
      work = group.allgather(zeros({group.size(), call.elements}), zeros({call.elements}), options);
      break;
    case OpType::kReduce:
      work = group.reduce(zeros({call.elements}), static_cast<int>(call.root), call.reduce_op,
                          options);
      break;
    case OpType::kReduceScatter:
      work = group.reduce_scatter(zeros({call.elements}), zeros({group.size(), call.elements}),
                                  call.reduce_op, options);
      break;
    case OpType::kAlltoall:
      work = group.alltoall(zeros({group.size(), call.elements}),
                            zeros({group.size(), call.elements}), options);
      break;
    case OpType::kSend:
      work = group.send(zeros({call.elements}), static_cast<int>(call.peer), options);
      break;
    case OpType::kRecv:
      work = group.recv(zeros({call.elements}), static_cast<int>(call.peer), options);
      break;
    case OpType::kBarrier:
      work = group.barrier(options);
      break;
  }
  if (call.wait) {
    work->wait();
  } else {
    in_flight_.push_back(std::move(work));
  }
}

/// torch.distributed.new_group: all ranks must make the call, members or not; afterwards the
/// members have a group.
void FaultEvents::happen(const GroupFault& group, const Place&) {
  std::vector<int> all(static_cast<std::size_t>(rank_.group->size()));
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int>(i);
  // Kept, because a rank that is first must not close its connections while others are still
  // connecting.
  const std::string creation = "new_group " + group.name;
  groups_[creation] = rank_.group->split(creation, all);
  const std::vector<int> members(group.members.begin(), group.members.end());
  if (std::find(members.begin(), members.end(), rank_.group->rank()) != members.end()) {
    groups_[group.name] = rank_.group->split(group.name, members);
  }
}

}  // namespace gradsync
