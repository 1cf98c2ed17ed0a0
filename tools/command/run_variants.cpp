#include "tools/command/run_variants.hpp"

#include "tools/command/shipped_files.hpp"

namespace gradsync {

void add_variant_runs_options(CLI::App& command, const std::string& name,
                              VariantRunsOptions& options) {
  command.add_option("SCENARIO", options.file, kScenarioHelp)->required()->transform(shipped_path);
  add_scenario_options(command, options.scenario);
  command.add_option("--out", options.out, "Folder for results (default: runs/NAME-" + name + ")")
      ->type_name("DIR");
  command
      .add_option("--jobs", options.jobs,
                  "Simultaneous runs (default: one per core; 1 on real backends)")
      ->check(CLI::PositiveNumber);
}

Scenario load_changed(const VariantRunsOptions& options,
                      const std::vector<ScenarioOverride>& changes) {
  std::vector<ScenarioOverride> overrides = overrides_of(options.scenario);
  overrides.insert(overrides.end(), changes.begin(), changes.end());
  return load_scenario(options.file, overrides);
}

std::filesystem::path results_folder(const VariantRunsOptions& options, const std::string& name,
                                     const Scenario& scenario) {
  if (!options.out.empty()) return options.out;
  return std::filesystem::path("runs") / (scenario.name + "-" + name);
}

std::vector<CachedRun> VariantRuns::run(const std::vector<Scenario>& scenarios) {
  progress_.expect(scenarios.size());
  std::vector<CachedRun> runs = run_cached(
      scenarios, folder_ / "points", options_->jobs.value_or(default_jobs(scenarios.front())),
      [&](std::size_t, const CachedRun& run) { progress_.done(run.reused); });
  progress_.clear();
  return runs;
}

}  // namespace gradsync
