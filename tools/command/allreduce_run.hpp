#pragma once

#include <functional>
#include <optional>
#include <string>

#include <CLI/CLI.hpp>

#include "gradsync/predict/allreduce_bench.hpp"
#include "gradsync/testbed/scenario/scenario.hpp"
#include "tools/command/scenario_options.hpp"

namespace gradsync {

/// What `bench`, `calibrate` and `validate` ask of an all-reduce benchmark.
struct AllreduceRunOptions {
  ScenarioOptions scenario;
  std::string cluster;  ///< file; the simulator runs on it
  AllreduceBench bench;
  std::optional<std::int64_t> iterations;  ///< unset: nccl-tests' 20; 1 in the simulator
  std::optional<std::int64_t> warmup;      ///< unset: nccl-tests' 5; 0 in the simulator
  std::string dtype = "float32";
};

/// --backend, --ranks, --timeout, --set, --cluster, --iterations, --warmup, --dtype, --check.
void add_allreduce_run_options(CLI::App& command, AllreduceRunOptions& options);

struct PreparedAllreduceRun {
  /// Of which backend, ranks, timeout, cluster, simulation, faults and imperfections matter.
  Scenario scenario;
  AllreduceBench bench;
  std::string program;  ///< "gradsync bench allreduce on gloo"
};

/// Throws ConfigError for a mistake in the cluster or an option, and for a fault or an imperfection
/// that a benchmark cannot have.
PreparedAllreduceRun prepare_allreduce_run(const AllreduceRunOptions& options);

/// Measures on the scenario's backend. `on_row` gets each size as it is done. Throws Error when a
/// rank failed.
BenchTable run_allreduce(const PreparedAllreduceRun& run,
                         const std::function<void(const BenchRow&)>& on_row);

}  // namespace gradsync
