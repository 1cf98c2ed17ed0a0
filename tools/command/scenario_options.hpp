#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "gradsync/testbed/scenario/scenario.hpp"

namespace gradsync {

/// The help of the argument SCENARIO.
inline constexpr const char* kScenarioHelp =
    "JSON file (see docs/scenarios.md), or one that ships with gradsync: quickstart";

/// The options that modify a scenario, shared by every subcommand that runs one.
struct ScenarioOptions {
  std::optional<std::string> backend;
  std::optional<std::int64_t> ranks;
  std::optional<std::string> timeout;
  std::vector<std::string> set;  ///< "PATH=VALUE"
};

void add_scenario_options(CLI::App& command, ScenarioOptions& options);

/// The options as assignments to the scenario, `set` first. Throws Error(kUsage) for a malformed
/// `set`, Error(kBackendUnavailable) for an unknown backend.
std::vector<ScenarioOverride> overrides_of(const ScenarioOptions& options);

/// Reads `file` with the options applied. Throws ConfigError for an error in either, and whatever
/// `overrides_of` throws.
Scenario load_scenario(const std::string& file, const ScenarioOptions& options);

}  // namespace gradsync
