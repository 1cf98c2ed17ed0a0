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

std::unique_ptr<Dataset> make_dataset(const DataSpec& spec) {
  switch (spec.kind) {
    case DataSpec::Kind::kSyntheticTokens:
      return make_synthetic_tokens(spec.samples, spec.seq_len, spec.vocab_size, spec.seed);
    case DataSpec::Kind::kText:
      return make_text_dataset(spec.path, spec.seq_len);
    case DataSpec::Kind::kIndices:
      return make_index_dataset(spec.samples);
    case DataSpec::Kind::kRegistered:
      return make_registered_dataset(spec.registered);
  }
  throw Error(ErrorCode::kInternal, "unknown kind of data set");
}

/// Leaves out settings that may differ between runs that do the same.
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

GroupOptions make_group_options(const Scenario& scenario) {
  GroupOptions options;
  options.timeout = scenario.timeout;
  options.flight_recorder_size = static_cast<std::size_t>(scenario.output.flight_recorder_size);
  return options;
}

void register_comm_hook(DistributedDataParallel& ddp, const DdpSpec& spec) {
  if (!spec.comm_hook) return;
  ddp.register_comm_hook(make_comm_hook(*spec.comm_hook, spec.power_sgd), *spec.comm_hook);
}

std::unique_ptr<Model> make_model(const Scenario& scenario, const RunInputs& inputs, int rank,
                                  int world_size, Device& device) {
  switch (scenario.model.kind) {
    case ModelSpec::Kind::kTransformer:
      return std::make_unique<TransformerModel>(scenario.model.transformer, scenario.seed, device);
    case ModelSpec::Kind::kReplay:
      return std::make_unique<ReplayModel>(inputs.profile, rank, world_size, scenario.model.replay,
                                           device);
    case ModelSpec::Kind::kRegistered:
      return make_registered_model(scenario.model.registered, scenario.seed, rank, world_size,
                                   device);
  }
  throw Error(ErrorCode::kInternal, "unknown kind of model");
}

namespace {

/// Creates one parameter group for each of the scenario's, preceded by a group of the remaining
/// parameters, if any. A group uses `options` with its own learning rate and weight decay. Throws
/// ConfigError for a pattern that matches no parameter.
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
  if (const auto* sgd = std::get_if<SgdOptions>(&spec.options)) {
    return std::make_unique<Sgd>(parameter_groups<Sgd::ParameterGroup>(spec, *sgd, parameters));
  }
  const auto& adamw = std::get<AdamWOptions>(spec.options);
  return std::make_unique<AdamW>(parameter_groups<AdamW::ParameterGroup>(spec, adamw, parameters));
}

}  // namespace gradsync
