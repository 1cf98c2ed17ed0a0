#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tools/command/cached_runs.hpp"
#include "tools/command/point_progress.hpp"
#include "tools/command/scenario_options.hpp"

namespace gradsync {

/// The options of the subcommands that run a scenario many times, each time with something changed.
struct VariantRunsOptions {
  std::string file;
  ScenarioOptions scenario;
  std::string out;
  std::optional<int> jobs;
};

/// `name`: the subcommand's, for the default of --out: runs/SCENARIO-NAME.
void add_variant_runs_options(CLI::App& command, const std::string& name,
                              VariantRunsOptions& options);

/// The scenario with the options applied, and then `changes`. Throws as `load_scenario`.
Scenario load_changed(const VariantRunsOptions& options,
                      const std::vector<ScenarioOverride>& changes);

/// The folder of --out, or its default.
std::filesystem::path results_folder(const VariantRunsOptions& options, const std::string& name,
                                     const Scenario& scenario);

/// Runs them as `run_cached` does, in the folder's `points`, with a line of progress: more runs of
/// the same command follow by calling `run` again.
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
