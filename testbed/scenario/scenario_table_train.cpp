// The rows of "optimizer", "train" and "ddp": the training loop.

#include <cmath>

#include "gradsync/ddp/comm_hooks.hpp"
#include "gradsync/testbed/scenario/scenario_codec.hpp"

namespace gradsync::scenario_table {

template <>
struct EnumNames<GradientMean> {
  static constexpr std::array<std::pair<const char*, GradientMean>, 2> kNames{
      {{"predivide", GradientMean::kPredivide}, {"average", GradientMean::kAverage}}};
};

namespace {

/// The kind of an optimizer with these options and their defaults.
template <class Options>
Kind optimizer_kind(std::string name, std::string description) {
  return {std::move(name), std::move(description),
          [](Scenario& scenario) { scenario.optimizer.options = Options{}; },
          [](const Scenario& scenario) {
            return std::holds_alternative<Options>(scenario.optimizer.options);
          }};
}

/// A member of one optimizer's options.
template <class Options, class T>
auto option(T Options::*member) {
  return [member](auto& s) -> auto& {
    return std::get<Options>(s.optimizer.options).*member;
  };
}

/// A row for an option of all optimizers: `member` takes any optimizer's options.
template <class Member>
Field common_option(std::string name, Member member, std::string description,
                    RowOptions options = {}, const Rule& rule = any()) {
  return field(
      std::move(name),
      [member](auto& s) -> auto& {
        return *std::visit([member](auto& of_kind) { return &member(of_kind); },
                           s.optimizer.options);
      },
      rule, std::move(description), std::move(options));
}

/// p of a norm. JSON has no infinity, so it is a number or the text "inf".
struct NormType {
  double p;
};

}  // namespace

template <>
struct Codec<PytorchVersion> {
  static Rule rule() {
    return matching("^[1-9][0-9]?\\.[0-9]{1,2}$", "a version of PyTorch such as \"2.7\"");
  }
  static std::string type(const Rule&) { return Codec<std::string>::type(rule()); }
  static Json schema(const Rule&) { return Codec<std::string>::schema(rule()); }
  static PytorchVersion read(const Json& value, const Rule&) {
    return parse_pytorch_version(Codec<std::string>::read(value, rule()));
  }
  static Json write(const PytorchVersion& version) { return to_string(version); }
};

template <>
struct Codec<NormType> {
  static std::string type(const Rule& rule) { return Codec<double>::type(rule) + ", or \"inf\""; }
  static Json schema(const Rule& rule) {
    return {{"anyOf", Json::array({Codec<double>::schema(rule),
                                   Json{{"type", "string"}, {"enum", {"inf"}}}})}};
  }
  static NormType read(const Json& value, const Rule& rule) {
    if (value == "inf") return {std::numeric_limits<double>::infinity()};
    try {
      return {Codec<double>::read(value, rule)};
    } catch (Mistake& mistake) {
      mistake.expected = type(rule);
      throw;
    }
  }
  static Json write(const NormType& norm) {
    return std::isinf(norm.p) ? Json("inf") : Json(norm.p);
  }
};

namespace {

Section lr_schedule_section() {
  using Kind = LrSchedule::Kind;
  constexpr auto kind = SCENARIO_MEMBER(optimizer.lr_schedule.kind);
  const std::vector<std::string> step{"step"};
  const std::vector<std::string> cosine{"cosine"};
  return {
      .name = "lr_schedule",
      .description =
          "How the learning rate changes from one optimizer step to the next, after a "
          "linear warm-up.",
      .kinds = {enum_kind("constant", "It stays.", kind, Kind::kConstant),
                enum_kind("step", "`StepLR`, counted in optimizer steps.", kind, Kind::kStep),
                enum_kind("cosine", "`CosineAnnealingLR`, one descent.", kind, Kind::kCosine)},
      .fields =
          {
              field("step_size", SCENARIO_MEMBER(optimizer.lr_schedule.step_size), at_least(1),
                    "Optimizer steps between two changes.", {.kinds = step}),
              field("gamma", SCENARIO_MEMBER(optimizer.lr_schedule.gamma), at_least(0),
                    "Factor of each change.", {.kinds = step}),
              field("total_steps", SCENARIO_MEMBER(optimizer.lr_schedule.total_steps), at_least(1),
                    "Optimizer steps until `min_lr` is reached.",
                    {.kinds = cosine, .other_names = {"T_max"}}),
              field("min_lr", SCENARIO_MEMBER(optimizer.lr_schedule.min_lr), at_least(0),
                    "Final learning rate.", {.kinds = cosine, .other_names = {"eta_min"}}),
              field("warmup_steps", SCENARIO_MEMBER(optimizer.lr_schedule.warmup_steps),
                    at_least(0), "Optimizer steps in which the learning rate rises to `lr`."),
              field("warmup_start_factor",
                    SCENARIO_MEMBER(optimizer.lr_schedule.warmup_start_factor), above(0),
                    "Fraction of `lr` in the first step of the warm-up.",
                    {.other_names = {"start_factor"}}),
          },
  };
}

Section power_sgd_section() {
  return {
      .name = "power_sgd",
      .description =
          "PowerSGDState, for the communication hooks `power_sgd` and "
          "`batched_power_sgd`.",
      .fields =
          {
              field("matrix_approximation_rank",
                    SCENARIO_MEMBER(ddp.power_sgd.matrix_approximation_rank), at_least(1),
                    "Columns of the two factors that are sent instead of a gradient."),
              field("start_powerSGD_iter", SCENARIO_MEMBER(ddp.power_sgd.start_powerSGD_iter),
                    at_least(0),
                    "Number of first iterations that are reduced without compression; at least 2 "
                    "with error feedback or warm start, because the buckets are rebuilt before the "
                    "second iteration."),
              field("use_error_feedback", SCENARIO_MEMBER(ddp.power_sgd.use_error_feedback), any(),
                    "Add the error of the compression to the next gradient."),
              field("warm_start", SCENARIO_MEMBER(ddp.power_sgd.warm_start), any(),
                    "Start each factorization from that of the last iteration."),
          },
  };
}

Section join_section() {
  return {
      .name = "join",
      .description =
          "Train with uneven inputs, as inside `with model.join():`. A rank without batches takes "
          "part in the collectives of the others with zeros.",
      .fields =
          {
              field("enable", SCENARIO_MEMBER(ddp.join.enable), any(),
                    "Run every epoch inside a join."),
              field("divide_by_initial_world_size",
                    SCENARIO_MEMBER(ddp.join.divide_by_initial_world_size), any(),
                    "Divide gradients by the number of all ranks; false: by the number of ranks "
                    "that still have batches."),
              field("throw_on_early_termination",
                    SCENARIO_MEMBER(ddp.join.throw_on_early_termination), any(),
                    "End the run on every rank, with an error, when the first rank runs out of "
                    "batches."),
          },
  };
}

}  // namespace

Section param_groups_section() {
  using Group = ParamGroupSpec;
  return list_section<Group>(
      "param_groups",
      "Groups of parameters with their own settings. Parameters in no group have the settings of "
      "the optimizer.",
      SCENARIO_MEMBER(optimizer.param_groups),
      {field("params", &Group::params, any(),
             "Names of parameters, where `*` matches anything. A parameter may belong to one group "
             "only.",
             {.examples = {Json::array({"*.bias", "*norm*"})}, .required = true}),
       field("lr", &Group::lr, at_least(0),
             "Learning rate before `lr_schedule` is applied; null: that of the optimizer."),
       field("weight_decay", &Group::weight_decay, at_least(0),
             "Weight decay; null: that of the optimizer.")});
}

Section optimizer_section() {
  const std::vector<std::string> adamw{"adamw"};
  const std::vector<std::string> sgd{"sgd"};
  return {
      .name = "optimizer",
      .description = "The optimizer, with PyTorch's names and defaults.",
      .kinds =
          {
              optimizer_kind<AdamWOptions>("adamw", "`torch.optim.AdamW`."),
              optimizer_kind<SgdOptions>("sgd", "`torch.optim.SGD`."),
          },
      .fields =
          {
              common_option(
                  "lr", [](auto& o) -> auto& { return o.lr; }, "Learning rate.",
                  {.other_names = {"learning_rate", "learningrate"}}, at_least(0)),
              computed_field<std::array<double, 2>>(
                  "betas",
                  [](const Scenario& s) {
                    const auto& adamw_options = std::get<AdamWOptions>(s.optimizer.options);
                    return std::array<double, 2>{adamw_options.beta1, adamw_options.beta2};
                  },
                  [](Scenario& s, const std::array<double, 2>& betas) {
                    auto& adamw_options = std::get<AdamWOptions>(s.optimizer.options);
                    adamw_options.beta1 = betas[0];
                    adamw_options.beta2 = betas[1];
                  },
                  from_to_below(0, 1), "Decay rates of the two moments.",
                  {.kinds = adamw, .other_names = {"beta1", "beta2"}}),
              field("eps", option(&AdamWOptions::eps), at_least(0), "Added to the denominator.",
                    {.kinds = adamw, .other_names = {"epsilon"}}),
              field("momentum", option(&SgdOptions::momentum), at_least(0), "Momentum.",
                    {.kinds = sgd}),
              field("dampening", option(&SgdOptions::dampening), any(),
                    "Dampening of the momentum.", {.kinds = sgd}),
              common_option(
                  "weight_decay", [](auto& o) -> auto& { return o.weight_decay; },
                  "Weight decay: decoupled in AdamW, an L2 penalty in SGD.",
                  {.other_names = {"wd", "decay"}}, at_least(0)),
              field("amsgrad", option(&AdamWOptions::amsgrad), any(),
                    "The AMSGrad variant: keep the largest second moment.", {.kinds = adamw}),
              field("nesterov", option(&SgdOptions::nesterov), any(),
                    "Nesterov momentum; needs `momentum` > 0 and `dampening` 0.", {.kinds = sgd}),
              common_option(
                  "maximize", [](auto& o) -> auto& { return o.maximize; },
                  "Maximize the loss instead of minimizing it."),
          },
      .sections = {lr_schedule_section(), param_groups_section()},
  };
}

Section train_section() {
  return {
      .name = "train",
      .description = "The loop.",
      .fields =
          {
              field("batch_size", SCENARIO_MEMBER(train.batch_size), at_least(1),
                    "Samples that each rank takes in a step. The last batch of an epoch may be "
                    "smaller.",
                    {.other_names = {"micro_batch_size", "per_rank_batch_size"}}),
              field("epochs", SCENARIO_MEMBER(train.epochs), at_least(1),
                    "Passes over the data set.", {.other_names = {"num_epochs"}}),
              field("max_steps", SCENARIO_MEMBER(train.max_steps), at_least(1),
                    "Number of optimizer steps after which training ends, counted over all epochs; "
                    "null: no limit.",
                    {.other_names = {"steps", "num_steps", "iterations"}}),
              field("accumulate_steps", SCENARIO_MEMBER(train.accumulate_steps), at_least(1),
                    "Number of batches whose gradients are averaged into one optimizer step. The "
                    "last step of an epoch may have fewer.",
                    {.other_names = {"gradient_accumulation_steps", "accumulation_steps"}}),
              field("no_sync", SCENARIO_MEMBER(train.no_sync), any(),
                    "Run all but the last batch of a step inside `no_sync()`; false: every "
                    "backward pass is reduced."),
              field("clip_grad_norm", SCENARIO_MEMBER(train.clip_grad_norm), above(0),
                    "Largest norm of all gradients together, as in `clip_grad_norm_`; null: no "
                    "clipping.",
                    {.other_names = {"max_norm", "max_grad_norm", "clip", "grad_clip"}}),
              computed_field<NormType>(
                  "clip_norm_type",
                  [](const Scenario& s) { return NormType{s.train.clip_norm_type}; },
                  [](Scenario& s, NormType norm) { s.train.clip_norm_type = norm.p; }, above(0),
                  "Order p of the norm for `clip_grad_norm`: 1, 2, ..., or `inf`.",
                  {.examples = {1, 2, "inf"}, .other_names = {"norm_type"}}),
              field("error_if_nonfinite", SCENARIO_MEMBER(train.error_if_nonfinite), any(),
                    "End the run when that norm is NaN or infinite."),
              field("hash_every", SCENARIO_MEMBER(train.hash_every), at_least(0),
                    "Number of steps between two hashes of all parameters; 0: hash after the last "
                    "step only."),
              field("check_hashes", SCENARIO_MEMBER(train.check_hashes), any(),
                    "Compare the hashes of all ranks whenever they are taken, and end the run as "
                    "`desync` when they differ."),
          },
  };
}

Section ddp_section() {
  return {
      .name = "ddp",
      .description = "`torch.nn.parallel.DistributedDataParallel`, with its names and defaults.",
      .fields =
          {
              field("bucket_cap_mb", SCENARIO_MEMBER(ddp.bucket_cap_mb), above(0),
                    "Size at which a bucket is full, in MiB. If it is given, it holds for the "
                    "first bucket too, as in PyTorch since 2.4.",
                    {.examples = {25, 50, 0.5},
                     .default_text = "25, and 1 for the first bucket",
                     .other_names = {"bucket_cap", "bucket_size", "bucket_size_mb"}}),
              field(
                  "first_bucket_cap_mb", SCENARIO_MEMBER(ddp.first_bucket_cap_mb), above(0),
                  "Size at which the first bucket is full, in MiB, regardless of `bucket_cap_mb`. "
                  "PyTorch has no such option: set `torch.distributed._DEFAULT_FIRST_BUCKET_BYTES` "
                  "before constructing DDP, and leave `bucket_cap_mb` at None (since 2.4 a value "
                  "holds for the first bucket too).",
                  {.examples = {1, 4},
                   .default_text = "1 if `bucket_cap_mb` is null, otherwise equal to it",
                   .other_names = {"first_bucket_cap", "first_bucket_size_mb"}}),
              field("gradient_as_bucket_view", SCENARIO_MEMBER(ddp.gradient_as_bucket_view), any(),
                    "Make gradients views into the buckets, which saves a copy in each direction."),
              field("find_unused_parameters", SCENARIO_MEMBER(ddp.find_unused_parameters), any(),
                    "After each forward, walk the graph to find parameters that it does not reach. "
                    "The buckets are then never rebuilt."),
              field("static_graph", SCENARIO_MEMBER(ddp.static_graph), any(),
                    "The graph is the same in every iteration."),
              field("broadcast_buffers", SCENARIO_MEMBER(ddp.broadcast_buffers), any(),
                    "Send rank 0's buffers to all before each forward."),
              field("params_and_buffers_to_ignore",
                    SCENARIO_MEMBER(ddp.params_and_buffers_to_ignore), any(),
                    "Names of parameters and buffers that are neither broadcast nor reduced.",
                    {.examples = {Json::array({"head.bias"})},
                     .other_names = {"ignored_parameters"}}),
              field("pytorch_version", SCENARIO_MEMBER(ddp.pytorch_version), any(),
                    "The version whose rules apply where versions of PyTorch differ "
                    "(docs/pytorch-parity.md).",
                    {.examples = {"2.7", "1.13"}}),
              field("gradient_mean", SCENARIO_MEMBER(ddp.gradient_mean), any(),
                    "Where the sum becomes the mean. `predivide`: each rank scales its gradients "
                    "by 1/world size as it copies them into the bucket, as PyTorch's DDP does. "
                    "`average`: the collective computes the average (`ncclAvg`), and nothing is "
                    "scaled before; available on `nccl`, and in `sim` with the library `nccl`.",
                    {.other_names = {"average_in_collective", "gradient_predivide_factor"}}),
              field("comm_hook", SCENARIO_MEMBER(ddp.comm_hook), one_of(comm_hook_names()),
                    "Communication hook, which decides what is sent for a bucket; null: none.",
                    {.other_names = {"register_comm_hook", "hook"}}),
          },
      .sections = {power_sgd_section(), join_section()},
  };
}

}  // namespace gradsync::scenario_table
