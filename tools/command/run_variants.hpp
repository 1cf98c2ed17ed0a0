#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tools/command/cached_runs.hpp"
#include "tools/command/point_progress.hpp"
#include "tools/command/scenario_options.hpp"

namespace gradsync {

/// The options of subcommands that run a scenario many times with changes.
struct VariantRunsOptions {
  std::string file;
  ScenarioOptions scenario;
  std::string out;
  std::optional<int> jobs;
};

/// `name`: the name of the subcommand, for the default of --out: runs/SCENARIO-NAME.
void add_variant_runs_options(CLI::App& command, const std::string& name,
                              VariantRunsOptions& options);

/// The scenario with the options applied, then `changes`. Throws like `load_scenario`.
Scenario load_changed(const VariantRunsOptions& options,
                      const std::vector<ScenarioOverride>& changes);

/// The folder of --out, or its default.
std::filesystem::path results_folder(const VariantRunsOptions& options, const std::string& name,
                                     const Scenario& scenario);

/// Runs variants through `run_cached` in the folder's `points`, with a progress line. `run` can be
/// called repeatedly within one command.
class VariantRuns {
 public:
  VariantRuns(const VariantRunsOptions& options, std::filesystem::path folder)
      : options_(&options), folder_(std::move(folder)), progress_(0) {}
  std::vector<CachedRun> run(const std::vector<Scenario>& scenarios);

 private:
  const VariantRunsOptions* options_;
  std::filesystem::path folder_;
  PointProgress progress_;
};

}  // namespace gradsync
