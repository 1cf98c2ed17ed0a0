#pragma once

#include <functional>
#include <optional>
#include <string>

#include <CLI/CLI.hpp>

#include "gradsync/predict/allreduce_bench.hpp"
#include "gradsync/testbed/scenario/scenario.hpp"
#include "tools/command/scenario_options.hpp"

namespace gradsync {

/// The all-reduce benchmark options shared by `bench`, `calibrate` and `validate`.
struct AllreduceRunOptions {
  ScenarioOptions scenario;
  std::string cluster;  ///< file of the simulated cluster
  AllreduceBench bench;
  std::optional<std::int64_t> iterations;  ///< unset: nccl-tests' 20; 1 in the simulator
  std::optional<std::int64_t> warmup;      ///< unset: nccl-tests' 5; 0 in the simulator
  std::string dtype = "float32";
};

/// --backend, --ranks, --timeout, --set, --cluster, --iterations, --warmup, --dtype, --check.
void add_allreduce_run_options(CLI::App& command, AllreduceRunOptions& options);

struct PreparedAllreduceRun {
  /// Only backend, ranks, timeout, cluster, simulation, faults and imperfections are used.
  Scenario scenario;
  AllreduceBench bench;
  std::string program;  ///< "gradsync bench allreduce on gloo"
};

/// Throws ConfigError for an error in the cluster or an option, and for faults or imperfections
/// that a benchmark does not support.
PreparedAllreduceRun prepare_allreduce_run(const AllreduceRunOptions& options);

/// Measures on the scenario's backend. `on_row` receives each size as it completes. Throws Error if
/// a rank failed.
BenchTable run_allreduce(const PreparedAllreduceRun& run,
                         const std::function<void(const BenchRow&)>& on_row);

}  // namespace gradsync
