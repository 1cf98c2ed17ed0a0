// The rows of "faults": what goes wrong in a run, and on which ranks.

#include "gradsync/testbed/scenario/scenario_codec.hpp"

namespace gradsync::scenario_table {

template <>
struct EnumNames<FaultPoint> {
  static constexpr std::array<std::pair<const char*, FaultPoint>, 11> kNames{
      {{"init", FaultPoint::kInit},
       {"data", FaultPoint::kData},
       {"forward", FaultPoint::kForward},
       {"backward", FaultPoint::kBackward},
       {"optimizer", FaultPoint::kOptimizer},
       {"evaluation", FaultPoint::kEvaluation},
       {"checkpoint", FaultPoint::kCheckpoint},
       {"step_end", FaultPoint::kStepEnd},
       {"epoch_end", FaultPoint::kEpochEnd},
       {"training_end", FaultPoint::kTrainingEnd},
       {"clean_up", FaultPoint::kCleanUp}}};
};
template <>
struct EnumNames<OpType> {
  static constexpr std::array<std::pair<const char*, OpType>, 4> kNames{
      {{"allreduce", OpType::kAllreduce},
       {"broadcast", OpType::kBroadcast},
       {"allgather", OpType::kAllgather},
       {"barrier", OpType::kBarrier}}};
};
template <>
struct EnumNames<ReduceOp> {
  static constexpr std::array<std::pair<const char*, ReduceOp>, 3> kNames{
      {{"sum", ReduceOp::kSum}, {"max", ReduceOp::kMax}, {"min", ReduceOp::kMin}}};
};

namespace {

/// A condition lasts to the end of the run where nothing else is said, an event one step.
Kind fault_kind(FaultKind value, bool lasts, FaultPoint at, std::string description) {
  return {to_string(value), std::move(description),
          [=](const Object& object) {
            FaultSpec& fault = object_as<FaultSpec>(object);
            fault.kind = value;
            fault.at = at;
            fault.steps = lasts ? 0 : 1;
          },
          [=](const Object& object) { return const_object_as<FaultSpec>(object).kind == value; }};
}

std::vector<std::string> names(std::initializer_list<FaultKind> kinds) {
  std::vector<std::string> list;
  for (const FaultKind kind : kinds) list.emplace_back(to_string(kind));
  return list;
}

std::vector<Kind> fault_kinds() {
  using K = FaultKind;
  using P = FaultPoint;
  return {
      fault_kind(K::kSkip, false, P::kBackward,
                 "The rank goes on to its next batch (`continue`): before the forward pass, or "
                 "with `\"at\": \"backward\"` after it, like a loop that finds a NaN loss."),
      fault_kind(K::kLeaveLoop, false, P::kStepEnd,
                 "The rank leaves its training loop before this step, like an early stop or a time "
                 "limit that applies to this rank only."),
      fault_kind(K::kThrow, false, P::kForward,
                 "An exception. With `caught` the loop of the rank swallows it and goes on with "
                 "the next batch; otherwise it ends the rank."),
      fault_kind(K::kExit, false, P::kForward,
                 "The process of the rank ends without an error (`os._exit`)."),
      fault_kind(K::kKill, false, P::kForward,
                 "A signal ends the rank's process, or with SIGSTOP stops it."),
      fault_kind(K::kDelay, false, P::kForward, "The rank takes longer."),
      fault_kind(
          K::kStall, false, P::kData,
          "The rank never proceeds: a loader that waits for a lock, or a kernel that does not "
          "return; with `\"at\": \"clean_up\"`, a clean-up that blocks after a failure."),
      fault_kind(K::kSlow, true, P::kStepEnd,
                 "The host of the rank is slow: all its compute takes `factor` times as long."),
      fault_kind(K::kResume, true, P::kInit,
                 "The rank starts at optimizer step `to_step`, as if from a checkpoint that the "
                 "other ranks do not load."),
      fault_kind(K::kCollective, false, P::kStepEnd,
                 "A collective of the program, in addition to those of DDP, on all ranks or only "
                 "on some."),
      fault_kind(K::kEvaluate, false, P::kEvaluation,
                 "A forward pass without gradients after the step, through DDP or around it."),
      fault_kind(K::kGroup, true, P::kInit,
                 "A second process group, created by `new_group`, which all ranks have to call."),
      fault_kind(K::kUnused, false, P::kForward,
                 "Parameters get no gradient, as in a branch of the model that is not taken."),
      fault_kind(
          K::kOrder, true, P::kInit,
          "DDP is given the parameters in another order: the named ones in reverse, or all."),
      fault_kind(K::kShape, true, P::kInit, "DDP is given a parameter of another shape."),
      fault_kind(K::kRename, true, P::kInit,
                 "DDP is given parameters with `name` in front of their names."),
      fault_kind(K::kReplace, true, P::kInit,
                 "Parameters are replaced after DDP has been constructed, so its hooks are on the "
                 "old ones."),
      fault_kind(K::kAdd, true, P::kInit,
                 "DDP is given additional parameters after those of the model, like those of one "
                 "more layer."),
      fault_kind(
          K::kReadyTwice, false, P::kBackward,
          "The hook of a parameter fires twice in one backward pass (reentrant checkpoints)."),
      fault_kind(K::kNan, false, P::kBackward,
                 "The loss, and with it every gradient of the rank, is NaN."),
      fault_kind(
          K::kLossScale, true, P::kBackward,
          "The rank multiplies its loss by `value` and divides the reduced gradients by it."),
      fault_kind(K::kClip, true, P::kOptimizer,
                 "The rank clips its reduced gradients to the norm `value`."),
      fault_kind(K::kNormReducedAgain, true, P::kOptimizer,
                 "The squared norm of the reduced gradients is summed over the ranks once more, "
                 "and clipping uses the root of that sum."),
      fault_kind(K::kClipBeforeUnscale, true, P::kOptimizer,
                 "The gradients are clipped before they are divided by the loss scale."),
      fault_kind(K::kClipInsideAccumulation, true, P::kBackward,
                 "The gradients are divided by the loss scale and clipped after each micro step, "
                 "not only after the last."),
      fault_kind(K::kLearningRate, true, P::kOptimizer, "The rank has a learning rate of its own."),
      fault_kind(
          K::kNoSync, false, P::kForward,
          "Whether the gradients of a micro step are reduced, regardless of `train.no_sync`."),
      fault_kind(K::kSampler, true, P::kInit,
                 "The sampler of the rank has another seed, does not call `set_epoch`, or deals "
                 "the shard of another rank."),
      fault_kind(K::kRendezvous, true, P::kInit,
                 "The rank comes to the rendezvous `duration` late, or never if `duration` is not "
                 "given; or it comes in time, but publishes a `wrong_address`."),
      fault_kind(K::kDevice, true, P::kInit,
                 "The rank uses this device; by default each rank has its own."),
      fault_kind(K::kSlots, true, P::kInit,
                 "The simulated device of the rank runs the kernels of a limited number of "
                 "collectives at a time, over all process groups. Each kernel holds its slot until "
                 "its collective has ended."),
      fault_kind(
          K::kLink, true, P::kStepEnd,
          "From `duration` on, the cables of a simulated node, or the link named by `link`, have "
          "their bandwidth multiplied by `factor` (0: the link is down), or lose `loss_percent` of "
          "the packets. This lasts until the end of the run, or for the time given by `lasts`."),
  };
}

std::vector<Field> loop_fields() {
  using K = FaultKind;
  return {
      field("ranks", &FaultSpec::ranks, at_least(0),
            "The ranks on which it happens; `[]`: all. For a `group`: the ranks that call "
            "`new_group`."),
      field("step", &FaultSpec::step, at_least(0),
            "The (first) optimizer step in which it happens, from 0.",
            {.kinds = names({K::kSkip, K::kLeaveLoop, K::kThrow, K::kExit, K::kKill, K::kDelay,
                             K::kStall, K::kCollective, K::kEvaluate, K::kUnused, K::kReadyTwice,
                             K::kNan, K::kLossScale, K::kClip, K::kNormReducedAgain,
                             K::kClipBeforeUnscale, K::kClipInsideAccumulation, K::kLearningRate,
                             K::kNoSync})}),
      field("steps", &FaultSpec::steps, at_least(0), "Number of steps; 0: until the end.",
            {.kinds = names({K::kSkip, K::kDelay, K::kCollective, K::kEvaluate, K::kUnused, K::kNan,
                             K::kLossScale, K::kClip, K::kNormReducedAgain, K::kClipBeforeUnscale,
                             K::kClipInsideAccumulation, K::kLearningRate, K::kNoSync})}),
      field("micro_step", &FaultSpec::micro_step, at_least(0),
            "The batch, in a step that has several (`train.accumulate_steps`); null: every batch.",
            {.kinds = names({K::kNoSync, K::kReadyTwice})}),
      field("at", &FaultSpec::at, any(),
            "Where in the step it happens. Faults at the same point happen in the order in which "
            "they are listed. `clean_up` (only for `stall` and `delay`): after the rank has "
            "failed, and before its process ends.",
            {.kinds = names(
                 {K::kSkip, K::kThrow, K::kExit, K::kKill, K::kDelay, K::kStall, K::kCollective})}),
      field("duration", &FaultSpec::duration, at_least(0),
            "Duration. For a `link`: the time since the start of the run at which it begins.",
            {.kinds = names({K::kDelay, K::kRendezvous, K::kLink})}),
      field("wrong_address", &FaultSpec::wrong_address, any(),
            "The rank publishes the address to which it is bound, 0.0.0.0, at which the others "
            "cannot reach it.",
            {.kinds = names({K::kRendezvous})}),
      field("message", &FaultSpec::message, any(), "Text of the error, or of the line in the log.",
            {.kinds = names({K::kThrow, K::kSkip, K::kLeaveLoop})}),
      field("caught", &FaultSpec::caught, any(),
            "The loop catches the exception and goes on with the next batch.",
            {.kinds = names({K::kThrow})}),
      field("handler", &FaultSpec::handler, any(),
            "A handler of the program runs first: faults that are listed after this one with the "
            "same `at` happen before the exception ends the rank.",
            {.kinds = names({K::kThrow})}),
      field("code", &FaultSpec::code, between(0, 255), "Exit status of the process.",
            {.kinds = names({K::kExit})}),
      field("signal", &FaultSpec::signal,
            one_of({"SIGKILL", "SIGSEGV", "SIGABRT", "SIGTERM", "SIGSTOP"}), "The signal.",
            {.kinds = names({K::kKill})}),
      field("to_step", &FaultSpec::to_step, at_least(0),
            "The optimizer step at which the rank starts.", {.kinds = names({K::kResume})}),
      field("factor", &FaultSpec::factor, at_least(0),
            "Factor by which the time, or the bandwidth, is multiplied.",
            {.kinds = names({K::kSlow, K::kLink})}),
      field("node", &FaultSpec::node, at_least(0),
            "Number of the node whose adapters are meant, if no `link` is named.",
            {.kinds = names({K::kLink})}),
      field("link", &FaultSpec::link, any(),
            "Name of a link as results print it: `nic-1-0` for both directions, `nic-1-0_UP` for "
            "one.",
            {.kinds = names({K::kLink})}),
      field("lasts", &FaultSpec::lasts, at_least(0), "Duration; 0: until the end of the run.",
            {.kinds = names({K::kLink})}),
      field("loss_percent", &FaultSpec::loss_percent, between(0, 99),
            "Percentage of the packets that are lost. A TCP connection over the link then carries "
            "at most MSS / RTT * sqrt(1.5 / p), Mathis's limit, with an MSS of 1460 bytes.",
            {.kinds = names({K::kLink})}),
      field("device", &FaultSpec::device, at_least(0), "Number of the device.",
            {.kinds = names({K::kDevice})}),
      field("slots", &FaultSpec::slots, at_least(1),
            "Number of collectives whose kernels run at a time.", {.kinds = names({K::kSlots})}),
      field("newest_first", &FaultSpec::newest_first, any(),
            "Of the collectives that wait for a slot, the device starts the newest first.",
            {.kinds = names({K::kSlots})}),
  };
}

std::vector<Field> communication_fields() {
  using K = FaultKind;
  return {
      field("op", &FaultSpec::op, any(), "The operation.", {.kinds = names({K::kCollective})}),
      field("elements", &FaultSpec::elements, at_least(1),
            "Elements of the tensor (an `allgather`'s input).", {.kinds = names({K::kCollective})}),
      field("dtype", &FaultSpec::dtype,
            one_of({"float32", "float64", "float16", "bfloat16", "int32", "int64", "uint8"}),
            "Their type.", {.kinds = names({K::kCollective})}),
      field("root", &FaultSpec::root, at_least(0), "Root of a `broadcast`: its rank in the group.",
            {.kinds = names({K::kCollective})}),
      field("reduce_op", &FaultSpec::reduce_op, any(), "Operation of an `allreduce`.",
            {.kinds = names({K::kCollective})}),
      field("group", &FaultSpec::group, any(),
            "Name of the `group` on which it runs; empty: the group of all ranks.",
            {.kinds = names({K::kCollective})}),
      field("name", &FaultSpec::name, any(),
            "Purpose of a collective, name of a group, or, for `rename`, the prefix of the names.",
            {.kinds = names({K::kCollective, K::kGroup, K::kRename})}),
      field("site", &FaultSpec::site, any(), "Call site in the program, such as `train.py:120`.",
            {.kinds = names({K::kCollective})}),
      field("members", &FaultSpec::members, at_least(0), "Ranks of the group.",
            {.kinds = names({K::kGroup})}),
      field("wait", &FaultSpec::wait, any(), "Wait for the result at once; false: after the step.",
            {.kinds = names({K::kCollective})}),
  };
}

std::vector<Field> training_fields() {
  using K = FaultKind;
  return {
      field("parameters", &FaultSpec::parameters, any(),
            "Names of parameters, or prefixes that end with `*`.",
            {.kinds =
                 names({K::kUnused, K::kOrder, K::kShape, K::kReplace, K::kAdd, K::kReadyTwice})}),
      field("shape", &FaultSpec::shape, at_least(0),
            "The wrong shape, or the shape of each additional parameter.",
            {.kinds = names({K::kShape, K::kAdd})}),
      field("through_ddp", &FaultSpec::through_ddp, any(),
            "Call the DDP wrapper, which may broadcast buffers; false: call the model inside it.",
            {.kinds = names({K::kEvaluate})}),
      field("value", &FaultSpec::value, above(0), "The scale, norm or rate.",
            {.kinds = names({K::kLossScale, K::kClip, K::kLearningRate})}),
      field("sync", &FaultSpec::sync, any(),
            "Reduce the gradients (true) or keep them local (false).",
            {.kinds = names({K::kNoSync})}),
      field("seed", &FaultSpec::seed, any(), "Seed of the shuffle; null: that of the scenario.",
            {.kinds = names({K::kSampler})}),
      field("set_epoch", &FaultSpec::set_epoch, any(),
            "Whether `set_epoch` is called; null: as in the scenario.",
            {.kinds = names({K::kSampler})}),
      field("shard_of", &FaultSpec::shard_of, at_least(0),
            "The rank whose shard it deals; null: its own.", {.kinds = names({K::kSampler})}),
  };
}

}  // namespace

Section faults_section() {
  std::vector<Field> fields = loop_fields();
  for (auto more : {communication_fields(), training_fields()}) {
    fields.insert(fields.end(), more.begin(), more.end());
  }
  return {
      .name = "faults",
      .description =
          "What goes wrong, and on which ranks: a list of faults, each with its `kind`. Faults "
          "happen in the engine, so they are the same on every backend, and they can be combined. "
          "A fault that a backend cannot produce is refused. [docs/hangs.md](hangs.md) shows the "
          "effect of each.",
      .kinds = fault_kinds(),
      .fields = std::move(fields),
      .list = list_of(SCENARIO_MEMBER(faults)),
  };
}

}  // namespace gradsync::scenario_table
