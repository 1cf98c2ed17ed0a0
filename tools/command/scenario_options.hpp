#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "gradsync/testbed/scenario/scenario.hpp"

namespace gradsync {

/// The options that change a scenario, the same for every subcommand that runs one.
struct ScenarioOptions {
  std::optional<std::string> backend;
  std::optional<std::int64_t> ranks;
  std::optional<std::string> timeout;
  std::vector<std::string> set;  ///< "PATH=VALUE"
  /// The kinds that the scenario may name; null: only those that every scenario knows.
  const Registry* registry = nullptr;
};

void add_scenario_options(CLI::App& command, ScenarioOptions& options,
                          const Registry* registry = nullptr);

/// The options as assignments to the scenario, `set` first. Throws Error(kUsage) for a `set` that
/// is none, Error(kBackendUnavailable) for a backend that gradsync has never heard of.
std::vector<ScenarioOverride> overrides_of(const ScenarioOptions& options);

const Registry& registry_of(const ScenarioOptions& options);

/// Reads `file` with the options applied. Throws ConfigError for a mistake in either, and what
/// `overrides_of` throws.
Scenario load_scenario(const std::string& file, const ScenarioOptions& options);

}  // namespace gradsync
