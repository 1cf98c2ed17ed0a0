#include "gradsync/testbed/rank/parameter_names.hpp"

#include <algorithm>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "gradsync/core/error.hpp"
#include "gradsync/core/name_pattern.hpp"
#include "gradsync/testbed/rank/factories.hpp"
#include "gradsync/testbed/scenario/scenario_hints.hpp"

namespace gradsync {
namespace {

using Names = std::vector<std::string>;

/// The patterns of names at one place of the scenario; may be empty.
struct Mention {
  std::string pointer;
  Names patterns;
  bool buffers = false;  ///< whether they may mean buffers
};

/// A fault of kind `add` brings its own names.
template <class Kind>
const Names* patterns_of(const Kind& kind) {
  if constexpr (requires { kind.parameters; } && !std::is_same_v<Kind, AddFault>) {
    return &kind.parameters;
  } else {
    return nullptr;
  }
}

std::vector<Mention> mentions_in(const Scenario& scenario) {
  std::vector<Mention> mentions;
  for (std::size_t i = 0; i < scenario.faults.size(); ++i) {
    const Names* patterns =
        std::visit([](const auto& kind) { return patterns_of(kind); }, scenario.faults[i].kind);
    if (patterns != nullptr) {
      mentions.push_back({fmt::format("/faults/{}/parameters", i), *patterns});
    }
  }
  const auto& ignored = scenario.ddp.params_and_buffers_to_ignore;
  mentions.push_back({"/ddp/params_and_buffers_to_ignore", {ignored.begin(), ignored.end()}, true});
  for (std::size_t i = 0; i < scenario.optimizer.param_groups.size(); ++i) {
    mentions.push_back({fmt::format("/optimizer/param_groups/{}/params", i),
                        scenario.optimizer.param_groups[i].params});
  }
  std::erase_if(mentions, [](const Mention& mention) { return mention.patterns.empty(); });
  return mentions;
}

/// The names that faults give to parameters of their own.
void add_names_of_faults(const Scenario& scenario, Names& names) {
  const Names of_model = names;
  for (const FaultSpec& fault : scenario.faults) {
    if (const auto* add = fault.as<AddFault>()) {
      names.insert(names.end(), add->parameters.begin(), add->parameters.end());
    } else if (const auto* rename = fault.as<RenameFault>()) {
      for (const std::string& name : of_model) names.push_back(rename->name + name);
    }
  }
}

void check(const Mention& mention, const Names& names, const std::string& file) {
  for (std::size_t i = 0; i < mention.patterns.size(); ++i) {
    const std::string& pattern = mention.patterns[i];
    if (std::ranges::any_of(names, [&](const auto& name) { return matches(pattern, name); })) {
      continue;
    }
    std::string hint = scenario_table::did_you_mean(pattern, names);
    if (hint.empty()) {
      hint = fmt::format("the model has {} of them, from \"{}\" to \"{}\"", names.size(),
                         names.front(), names.back());
    }
    throw ConfigError({file, fmt::format("{}/{}", mention.pointer, i),
                       mention.buffers
                           ? "the name of a parameter or buffer of the model, or a pattern"
                           : "the name of a parameter of the model, or a pattern",
                       fmt::format("\"{}\"", pattern), hint});
  }
}

}  // namespace

void check_parameter_names(const Scenario& scenario, const std::string& file) {
  const std::vector<Mention> mentions = mentions_in(scenario);
  if (mentions.empty()) return;
  RunInputs inputs;
  if (scenario.model.kind == ModelSpec::Kind::kReplay) {
    inputs.profile =
        std::make_shared<const ModelProfile>(load_profile(scenario.model.replay.profile));
  }
  const auto model =
      make_model(scenario, inputs, 0, static_cast<int>(scenario.ranks), meta_device());
  Names parameters;
  for (const ParameterPtr& parameter : model->parameters()) parameters.push_back(parameter->name());
  add_names_of_faults(scenario, parameters);
  Names with_buffers = parameters;
  for (const BufferPtr& buffer : model->buffers()) with_buffers.push_back(buffer->name);
  for (const Mention& mention : mentions) {
    check(mention, mention.buffers ? with_buffers : parameters, file);
  }
}

}  // namespace gradsync
