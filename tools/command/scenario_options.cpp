#include "tools/command/scenario_options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gradsync/core/error.hpp"
#include "gradsync/testbed/rank/parameter_names.hpp"
#include "tools/command/backend_registry.hpp"

namespace gradsync {
namespace {

ScenarioOverride parse_assignment(const std::string& text) {
  const auto equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    throw Error(ErrorCode::kUsage, "--set takes PATH=VALUE, such as --set train.batch_size=16; \"" +
                                       text + "\" is not of that form");
  }
  return {text.substr(0, equals), text.substr(equals + 1), "--set " + text};
}

/// "{gloo,nccl,sim}". Not checked by CLI11: an unknown backend has an exit status of its own.
std::string backend_choices() {
  return fmt::format("{{{}}}", fmt::join(backend_names(), ","));
}

}  // namespace

void add_scenario_options(CLI::App& command, ScenarioOptions& options) {
  command
      .add_option("--backend", options.backend,
                  "Backend (`gradsync backends` says which are available)")
      ->type_name(backend_choices());
  command.add_option("--ranks", options.ranks, "Number of ranks")->type_name("N");
  command
      .add_option("--timeout", options.timeout,
                  "Longest wait for a collective and for the rendezvous, such as 10s")
      ->type_name("DURATION");
  command
      .add_option("--set", options.set,
                  "Set any key of the scenario, such as train.batch_size=16; may be repeated")
      ->type_name("PATH=VALUE")
      ->expected(1)
      ->take_all();
}

std::vector<ScenarioOverride> overrides_of(const ScenarioOptions& options) {
  std::vector<ScenarioOverride> overrides;
  for (const std::string& assignment : options.set) {
    overrides.push_back(parse_assignment(assignment));
  }
  if (options.backend) {
    find_backend(*options.backend);
    overrides.push_back({"backend", *options.backend, "--backend " + *options.backend});
  }
  if (options.ranks) {
    const std::string ranks = std::to_string(*options.ranks);
    overrides.push_back({"ranks", ranks, "--ranks " + ranks});
  }
  if (options.timeout) {
    overrides.push_back({"timeout", *options.timeout, "--timeout " + *options.timeout});
  }
  return overrides;
}

Scenario load_scenario(const std::string& file, const ScenarioOptions& options) {
  Scenario scenario = load_scenario(file, overrides_of(options));
  check_parameter_names(scenario, file);
  return scenario;
}

}  // namespace gradsync
