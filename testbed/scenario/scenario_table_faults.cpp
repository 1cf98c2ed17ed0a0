// The rows of "faults": what goes wrong in a run, and on which ranks.

#include <algorithm>
#include <iterator>

#include "gradsync/testbed/scenario/backend_descriptor.hpp"
#include "gradsync/testbed/scenario/fault_rows.hpp"
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

template <class Fault>
Kind kind_of_fault(std::string description, std::vector<Field> keys) {
  return {Fault::kName, std::move(description), [](FaultSpec& spec) { spec.kind = Fault{}; },
          [](const FaultSpec& spec) { return spec.as<Fault>() != nullptr; }, std::move(keys)};
}

template <class Fault>
FaultRow row(std::string description, std::vector<Field> keys) {
  return {kind_of_fault<Fault>(std::move(description), std::move(keys))};
}

const BackendDescriptor& backend_of(const Scenario& scenario) {
  return backend_descriptor(scenario.backend);
}

/// Of a fault that not every backend can do: `missing` takes the fault and the scenario.
template <class Fault, class Missing>
FaultRow row(std::string description, std::vector<Field> keys, Missing missing) {
  return {kind_of_fault<Fault>(std::move(description), std::move(keys)), false,
          [missing](const FaultSpec& spec, const Scenario& scenario) -> std::string {
            return missing(*spec.as<Fault>(), scenario);
          }};
}

FaultRow and_at_clean_up(FaultRow row) {
  row.at_clean_up = true;
  return row;
}

/// A key of one kind.
template <class Fault, class T>
Field key(std::string name, T Fault::*member, const Rule& rule, std::string description) {
  return computed_field<T>(
      std::move(name),
      [member](const FaultSpec& spec) -> const T& { return spec.as<Fault>()->*member; },
      [member](FaultSpec& spec, T value) { spec.as<Fault>()->*member = std::move(value); }, rule,
      std::move(description));
}

// Keys that several kinds have.

template <class Fault>
Field step() {
  return key("step", &Fault::step, at_least(0),
             "The (first) optimizer step in which it happens, from 0.");
}
template <class Fault>
Field steps() {
  return key("steps", &Fault::steps, at_least(0), "Number of steps; 0: until the end.");
}
template <class Fault>
Field micro_step() {
  return key(
      "micro_step", &Fault::micro_step, at_least(0),
      "The batch, in a step that has several (`train.accumulate_steps`); null: every batch.");
}
template <class Fault>
Field at() {
  return key("at", &Fault::at, any(),
             "Where in the step it happens. Faults at the same point happen in the order in which "
             "they are listed. `clean_up` (only for `stall` and `delay`): after the rank has "
             "failed, and before its process ends.");
}
template <class Fault>
Field duration() {
  return key("duration", &Fault::duration, at_least(0),
             "Duration. For a `link`: the time since the start of the run at which it begins.");
}
template <class Fault>
Field message() {
  return key("message", &Fault::message, any(), "Text of the error, or of the line in the log.");
}
template <class Fault>
Field factor() {
  return key("factor", &Fault::factor, at_least(0),
             "Factor by which the time, or the bandwidth, is multiplied.");
}
template <class Fault>
Field name() {
  return key(
      "name", &Fault::name, any(),
      "Purpose of a collective, name of a group, or, for `rename`, the prefix of the names.");
}
template <class Fault>
Field parameters() {
  return key("parameters", &Fault::parameters, any(),
             "Names of parameters, or prefixes that end with `*`.");
}
template <class Fault>
Field shape() {
  return key("shape", &Fault::shape, at_least(0),
             "The wrong shape, or the shape of each additional parameter.");
}
template <class Fault>
Field value() {
  return key("value", &Fault::value, above(0), "The scale, norm or rate.");
}

/// The loop of a rank takes another turn.
std::vector<FaultRow> loop_rows() {
  using Skip = SkipFault;
  using Leave = LeaveLoopFault;
  using Throw = ThrowFault;
  using Exit = ExitFault;
  using Kill = KillFault;
  using Delay = DelayFault;
  using Stall = StallFault;
  return {
      row<Skip>("The rank goes on to its next batch (`continue`): before the forward pass, or with "
                "`\"at\": \"backward\"` after it, like a loop that finds a NaN loss.",
                {step<Skip>(), steps<Skip>(), at<Skip>(), message<Skip>()}),
      row<Leave>("The rank leaves its training loop before this step, like an early stop or a time "
                 "limit that applies to this rank only.",
                 {step<Leave>(), message<Leave>()}),
      row<Throw>("An exception. With `caught` the loop of the rank swallows it and goes on with "
                 "the next batch; otherwise it ends the rank.",
                 {step<Throw>(), at<Throw>(), message<Throw>(),
                  key("caught", &Throw::caught, any(),
                      "The loop catches the exception and goes on with the next batch."),
                  key("handler", &Throw::handler, any(),
                      "A handler of the program runs first: faults that are listed after this one "
                      "with the same `at` happen before the exception ends the rank.")}),
      row<Exit>("The process of the rank ends without an error (`os._exit`).",
                {step<Exit>(), at<Exit>(),
                 key("code", &Exit::code, between(0, 255), "Exit status of the process.")}),
      row<Kill>(
          "A signal ends the rank's process, or with SIGSTOP stops it.",
          {step<Kill>(), at<Kill>(),
           key("signal", &Kill::signal,
               one_of({"SIGKILL", "SIGSEGV", "SIGABRT", "SIGTERM", "SIGSTOP"}), "The signal.")}),
      and_at_clean_up(row<Delay>("The rank takes longer.",
                                 {step<Delay>(), steps<Delay>(), at<Delay>(), duration<Delay>()})),
      and_at_clean_up(row<Stall>(
          "The rank never proceeds: a loader that waits for a lock, or a kernel that does not "
          "return; with `\"at\": \"clean_up\"`, a clean-up that blocks after a failure.",
          {step<Stall>(), at<Stall>()})),
      row<SlowFault>("The host of the rank is slow: all its compute takes `factor` times as long.",
                     {factor<SlowFault>()},
                     [](const SlowFault&, const Scenario& s) {
                       const bool computed = s.model.kind != ModelSpec::Kind::kReplay;
                       return computed && !backend_of(s).is_simulated
                                  ? "a computed model takes the time that it takes; give it a "
                                    "delay, or replay one"
                                  : "";
                     }),
      row<ResumeFault>("The rank starts at optimizer step `to_step`, as if from a checkpoint that "
                       "the other ranks do not load.",
                       {key("to_step", &ResumeFault::to_step, at_least(0),
                            "The optimizer step at which the rank starts.")}),
  };
}

/// Communication beside the gradients.
std::vector<FaultRow> communication_rows() {
  using Collective = CollectiveFault;
  using Evaluate = EvaluateFault;
  return {
      row<Collective>(
          "A collective of the program, in addition to those of DDP, on all ranks or only on some.",
          {step<Collective>(), steps<Collective>(), at<Collective>(),
           key("op", &Collective::op, any(), "The operation."),
           key("elements", &Collective::elements, at_least(1),
               "Elements of the tensor (an `allgather`'s input)."),
           key("dtype", &Collective::dtype,
               one_of({"float32", "float64", "float16", "bfloat16", "int32", "int64", "uint8"}),
               "Their type."),
           key("root", &Collective::root, at_least(0),
               "Root of a `broadcast`: its rank in the group."),
           key("reduce_op", &Collective::reduce_op, any(), "Operation of an `allreduce`."),
           key("group", &Collective::group, any(),
               "Name of the `group` on which it runs; empty: the group of all ranks."),
           name<Collective>(),
           key("site", &Collective::site, any(),
               "Call site in the program, such as `train.py:120`."),
           key("wait", &Collective::wait, any(),
               "Wait for the result at once; false: after the step.")}),
      row<Evaluate>("A forward pass without gradients after the step, through DDP or around it.",
                    {step<Evaluate>(), steps<Evaluate>(),
                     key("through_ddp", &Evaluate::through_ddp, any(),
                         "Call the DDP wrapper, which may broadcast buffers; false: call the model "
                         "inside it.")}),
      row<GroupFault>(
          "A second process group, created by `new_group`, which all ranks have to call.",
          {name<GroupFault>(),
           key("members", &GroupFault::members, at_least(0), "Ranks of the group.")}),
  };
}

std::vector<FaultRow> model_rows() {
  using Unused = UnusedFault;
  using Twice = ReadyTwiceFault;
  return {
      row<Unused>("Parameters get no gradient, as in a branch of the model that is not taken.",
                  {step<Unused>(), steps<Unused>(), parameters<Unused>()}),
      row<OrderFault>(
          "DDP is given the parameters in another order: the named ones in reverse, or all.",
          {parameters<OrderFault>()}),
      row<ShapeFault>("DDP is given a parameter of another shape.",
                      {parameters<ShapeFault>(), shape<ShapeFault>()}),
      row<RenameFault>("DDP is given parameters with `name` in front of their names.",
                       {name<RenameFault>()}),
      row<ReplaceFault>("Parameters are replaced after DDP has been constructed, so its hooks are "
                        "on the old ones.",
                        {parameters<ReplaceFault>()}),
      row<AddFault>("DDP is given additional parameters after those of the model, like those of "
                    "one more layer.",
                    {parameters<AddFault>(), shape<AddFault>()}),
      row<Twice>(
          "The hook of a parameter fires twice in one backward pass (reentrant checkpoints).",
          {step<Twice>(), micro_step<Twice>(), parameters<Twice>()}),
      row<NanFault>("The loss, and with it every gradient of the rank, is NaN.",
                    {step<NanFault>(), steps<NanFault>()}),
  };
}

/// What an update is made of.
std::vector<FaultRow> update_rows() {
  using Scale = LossScaleFault;
  using Clip = ClipFault;
  using Again = NormReducedAgainFault;
  using Early = ClipBeforeUnscaleFault;
  using Inside = ClipInsideAccumulationFault;
  using Rate = LearningRateFault;
  using NoSync = NoSyncFault;
  using Sampler = SamplerFault;
  return {
      row<Scale>("The rank multiplies its loss by `value` and divides the reduced gradients by it.",
                 {step<Scale>(), steps<Scale>(), value<Scale>()}),
      row<Clip>("The rank clips its reduced gradients to the norm `value`.",
                {step<Clip>(), steps<Clip>(), value<Clip>()}),
      row<Again>("The squared norm of the reduced gradients is summed over the ranks once more, "
                 "and clipping uses the root of that sum.",
                 {step<Again>(), steps<Again>()}),
      row<Early>("The gradients are clipped before they are divided by the loss scale.",
                 {step<Early>(), steps<Early>()}),
      row<Inside>("The gradients are divided by the loss scale and clipped after each micro step, "
                  "not only after the last.",
                  {step<Inside>(), steps<Inside>()}),
      row<Rate>("The rank has a learning rate of its own.",
                {step<Rate>(), steps<Rate>(), value<Rate>()}),
      row<NoSync>(
          "Whether the gradients of a micro step are reduced, regardless of `train.no_sync`.",
          {step<NoSync>(), steps<NoSync>(), micro_step<NoSync>(),
           key("sync", &NoSync::sync, any(),
               "Reduce the gradients (true) or keep them local (false).")}),
      row<Sampler>(
          "The sampler of the rank has another seed, does not call `set_epoch`, or deals the shard "
          "of another rank.",
          {key("seed", &Sampler::seed, any(), "Seed of the shuffle; null: that of the scenario."),
           key("set_epoch", &Sampler::set_epoch, any(),
               "Whether `set_epoch` is called; null: as in the scenario."),
           key("shard_of", &Sampler::shard_of, at_least(0),
               "The rank whose shard it deals; null: its own.")}),
  };
}

/// What the rank runs on.
std::vector<FaultRow> environment_rows() {
  using Rendezvous = RendezvousFault;
  using Slots = SlotsFault;
  using Link = LinkFault;
  return {
      row<Rendezvous>(
          "The rank comes to the rendezvous `duration` late, or never if `duration` is not given; "
          "or it comes in time, but publishes a `wrong_address`.",
          {duration<Rendezvous>(), key("wrong_address", &Rendezvous::wrong_address, any(),
                                       "The rank publishes the address to which it is bound, "
                                       "0.0.0.0, at which the others cannot reach it.")},
          [](const Rendezvous& fault, const Scenario& s) {
            return fault.wrong_address && !backend_of(s).chooses_addresses
                       ? "the addresses go through the library's own sockets, out of reach"
                       : "";
          }),
      row<DeviceFault>("The rank uses this device; by default each rank has its own.",
                       {key("device", &DeviceFault::device, at_least(0), "Number of the device.")}),
      row<Slots>(
          "The simulated device of the rank runs the kernels of a limited number of collectives at "
          "a time, over all process groups. Each kernel holds its slot until its collective has "
          "ended.",
          {key("slots", &Slots::slots, at_least(1),
               "Number of collectives whose kernels run at a time."),
           key("newest_first", &Slots::newest_first, any(),
               "Of the collectives that wait for a slot, the device starts the newest first.")},
          [](const Slots&, const Scenario& s) {
            return backend_of(s).has_device_slots ? ""
                                                  : "only a simulated device's room can be set";
          }),
      row<Link>(
          "From `duration` on, the cables of a simulated node, or the link named by `link`, have "
          "their bandwidth multiplied by `factor` (0: the link is down), or lose `loss_percent` of "
          "the packets. This lasts until the end of the run, or for the time given by `lasts`.",
          {duration<Link>(), factor<Link>(),
           key("node", &Link::node, at_least(0),
               "Number of the node whose adapters are meant, if no `link` is named."),
           key("link", &Link::link, any(),
               "Name of a link as results print it: `nic-1-0` for both directions, `nic-1-0_UP` "
               "for one."),
           key("lasts", &Link::lasts, at_least(0), "Duration; 0: until the end of the run."),
           key("loss_percent", &Link::loss_percent, between(0, 99),
               "Percentage of the packets that are lost. A TCP connection over the link then "
               "carries at most MSS / RTT * sqrt(1.5 / p), Mathis's limit, with an MSS of 1460 "
               "bytes.")},
          [](const Link&, const Scenario& s) {
            return backend_of(s).changes_links ? "" : "only simulated cables can be taken down";
          }),
  };
}

std::vector<FaultRow> make_fault_rows() {
  std::vector<FaultRow> rows;
  for (auto part : {loop_rows, communication_rows, model_rows, update_rows, environment_rows}) {
    std::vector<FaultRow> more = part();
    std::move(more.begin(), more.end(), std::back_inserter(rows));
  }
  return rows;
}

}  // namespace

const std::vector<FaultRow>& fault_rows() {
  static const std::vector<FaultRow> rows = make_fault_rows();
  return rows;
}

const FaultRow& row_of(const FaultSpec& fault) {
  const auto& rows = fault_rows();
  return *std::find_if(rows.begin(), rows.end(),
                       [&](const FaultRow& row) { return row.kind.name == name_of(fault); });
}

Section faults_section() {
  std::vector<Kind> kinds;
  for (const FaultRow& row : fault_rows()) kinds.push_back(row.kind);
  return list_section<FaultSpec>(
      "faults",
      "What goes wrong, and on which ranks: a list of faults, each with its `kind`. Faults happen "
      "in the engine, so they are the same on every backend, and they can be combined. A fault "
      "that a backend cannot produce is refused. [docs/hangs.md](hangs.md) shows the effect of "
      "each.",
      SCENARIO_MEMBER(faults),
      {field("ranks", &FaultSpec::ranks, at_least(0),
             "The ranks on which it happens; `[]`: all. For a `group`: the ranks that call "
             "`new_group`.")},
      std::move(kinds));
}

}  // namespace gradsync::scenario_table
