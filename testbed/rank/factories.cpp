#include "gradsync/testbed/rank/factories.hpp"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gradsync/autograd/parameter_hash.hpp"
#include "gradsync/core/error.hpp"
#include "gradsync/core/name_pattern.hpp"
#include "gradsync/ddp/comm_hooks.hpp"
#include "gradsync/models/replay.hpp"
#include "gradsync/models/transformer.hpp"
#include "gradsync/optim/adamw.hpp"
#include "gradsync/optim/sgd.hpp"

namespace gradsync {
namespace {

/// What a registered kind's factory returned.
template <class T>
std::unique_ptr<T> made(std::unique_ptr<T> object, const RegisteredKind& kind) {
  if (object) return object;
  throw Error(ErrorCode::kMisuse,
              fmt::format("the factory of the registered kind \"{}\" returned nothing", kind.name));
}

std::unique_ptr<Dataset> make_dataset(const DataSpec& spec) {
  switch (spec.kind) {
    case DataSpec::Kind::kSyntheticTokens:
      return make_synthetic_tokens(spec.samples, spec.seq_len, spec.vocab_size, spec.seed);
    case DataSpec::Kind::kText:
      return make_text_dataset(spec.path, spec.seq_len);
    case DataSpec::Kind::kIndices:
      return make_index_dataset(spec.samples);
    case DataSpec::Kind::kRegistered:
      return made(spec.registered.kind->make({spec.registered.options, "/data"}),
                  *spec.registered.kind);
  }
  throw Error(ErrorCode::kInternal, "unknown kind of data set");
}

/// Without what may differ between runs that do the same.
std::string hash_configuration(const Scenario& scenario) {
  nlohmann::ordered_json json = to_json(scenario);
  for (const char* key :
       {"name", "description", "backend", "output", "expect", "faults", "imperfections"}) {
    json.erase(key);
  }
  return hash_text(json.dump()).hex();
}

}  // namespace

std::shared_ptr<const RunInputs> load_inputs(const Scenario& scenario) {
  auto inputs = std::make_shared<RunInputs>();
  inputs->dataset = make_dataset(scenario.data);
  if (scenario.model.kind == ModelSpec::Kind::kReplay) {
    inputs->profile =
        std::make_shared<const ModelProfile>(load_profile(scenario.model.replay.profile));
  }
  inputs->config_hash = hash_configuration(scenario);
  return inputs;
}

DdpOptions ddp_options(const DdpSpec& spec) {
  DdpOptions options;
  options.bucket_cap_mb = spec.bucket_cap_mb;
  options.first_bucket_cap_mb = spec.first_bucket_cap_mb;
  options.gradient_as_bucket_view = spec.gradient_as_bucket_view;
  options.find_unused_parameters = spec.find_unused_parameters;
  options.static_graph = spec.static_graph;
  options.broadcast_buffers = spec.broadcast_buffers;
  options.params_and_buffers_to_ignore = spec.params_and_buffers_to_ignore;
  options.pytorch_version = parse_pytorch_version(spec.pytorch_version);
  options.gradient_mean = spec.gradient_mean;
  return options;
}

JoinOptions join_options(const JoinSpec& spec) {
  return {.divide_by_initial_world_size = spec.divide_by_initial_world_size,
          .enable = spec.enable,
          .throw_on_early_termination = spec.throw_on_early_termination};
}

LrSchedule lr_schedule(const LrScheduleSpec& spec) {
  LrSchedule schedule;
  switch (spec.kind) {
    case LrScheduleSpec::Kind::kConstant:
      schedule.kind = LrSchedule::Kind::kConstant;
      break;
    case LrScheduleSpec::Kind::kStep:
      schedule.kind = LrSchedule::Kind::kStep;
      break;
    case LrScheduleSpec::Kind::kCosine:
      schedule.kind = LrSchedule::Kind::kCosine;
      break;
  }
  schedule.step_size = spec.step_size;
  schedule.gamma = spec.gamma;
  schedule.total_steps = spec.total_steps;
  schedule.min_lr = spec.min_lr;
  schedule.warmup_steps = spec.warmup_steps;
  schedule.warmup_start_factor = spec.warmup_start_factor;
  return schedule;
}

void register_comm_hook(DistributedDataParallel& ddp, const DdpSpec& spec) {
  if (!spec.comm_hook) return;
  PowerSgdOptions options;
  options.matrix_approximation_rank = spec.power_sgd.matrix_approximation_rank;
  options.start_powerSGD_iter = spec.power_sgd.start_powerSGD_iter;
  options.use_error_feedback = spec.power_sgd.use_error_feedback;
  options.warm_start = spec.power_sgd.warm_start;
  ddp.register_comm_hook(make_comm_hook(*spec.comm_hook, options), *spec.comm_hook);
}

std::unique_ptr<Model> make_model(const Scenario& scenario, const RunInputs& inputs, int rank,
                                  int world_size, Device& device) {
  if (scenario.model.kind == ModelSpec::Kind::kReplay) {
    ReplayOptions options;
    options.compute_scale = scenario.model.replay.compute_scale;
    return std::make_unique<ReplayModel>(inputs.profile, rank, world_size, options, device);
  }
  if (scenario.model.kind == ModelSpec::Kind::kRegistered) {
    const auto& [kind, options] = scenario.model.registered;
    const KindOptions kind_options(options, "/model");
    return made(kind->make({kind_options, scenario.seed, rank, world_size, device}), *kind);
  }
  const TransformerSpec& spec = scenario.model.transformer;
  TransformerOptions options;
  options.vocab_size = spec.vocab_size;
  options.d_model = spec.d_model;
  options.nhead = spec.nhead;
  options.num_layers = spec.num_layers;
  options.dim_feedforward = spec.dim_feedforward;
  options.norm_first = spec.norm_first;
  options.dtype = spec.dtype;
  options.norm = spec.norm == TransformerSpec::Norm::kBatchNorm ? BlockNorm::kBatchNorm
                                                                : BlockNorm::kLayerNorm;
  return std::make_unique<TransformerModel>(options, scenario.seed, device);
}

namespace {

/// One group for each of the scenario's, behind that of all other parameters, if there are any:
/// `options`, with the group's own learning rate and weight decay. Throws ConfigError for a pattern
/// that means no parameter.
template <typename ParameterGroup, typename Options>
std::vector<ParameterGroup> parameter_groups(const OptimizerSpec& spec, const Options& options,
                                             const std::vector<ParameterPtr>& parameters) {
  ParameterGroup rest{parameters, options};
  std::vector<ParameterGroup> groups;
  for (std::size_t i = 0; i < spec.param_groups.size(); ++i) {
    const ParamGroupSpec& described = spec.param_groups[i];
    ParameterGroup& group = groups.emplace_back();
    group.options = options;
    group.options.lr = described.lr.value_or(options.lr);
    group.options.weight_decay = described.weight_decay.value_or(options.weight_decay);
    const auto is_meant = [&](const ParameterPtr& parameter) {
      return std::ranges::any_of(described.params, [&](const std::string& pattern) {
        return matches(pattern, parameter->name());
      });
    };
    std::ranges::copy_if(parameters, std::back_inserter(group.parameters), is_meant);
    if (group.parameters.empty()) {
      throw ConfigError({"", fmt::format("/optimizer/param_groups/{}/params", i),
                         "names of parameters", "patterns that mean none of the model",
                         "`gradsync run` lists the buckets' parameters in result.json"});
    }
    std::erase_if(rest.parameters, is_meant);
  }
  if (!rest.parameters.empty()) groups.insert(groups.begin(), std::move(rest));
  return groups;
}

}  // namespace

std::unique_ptr<Optimizer> make_optimizer(const OptimizerSpec& spec,
                                          const std::vector<ParameterPtr>& parameters) {
  if (spec.kind == OptimizerSpec::Kind::kSgd) {
    SgdOptions options;
    options.lr = spec.lr;
    options.momentum = spec.momentum;
    options.dampening = spec.dampening;
    options.weight_decay = spec.weight_decay;
    options.nesterov = spec.nesterov;
    options.maximize = spec.maximize;
    return std::make_unique<Sgd>(parameter_groups<Sgd::ParameterGroup>(spec, options, parameters));
  }
  AdamWOptions options;
  options.lr = spec.lr;
  options.beta1 = spec.beta1;
  options.beta2 = spec.beta2;
  options.eps = spec.eps;
  options.weight_decay = spec.weight_decay;
  options.amsgrad = spec.amsgrad;
  options.maximize = spec.maximize;
  return std::make_unique<AdamW>(
      parameter_groups<AdamW::ParameterGroup>(spec, options, parameters));
}

}  // namespace gradsync
