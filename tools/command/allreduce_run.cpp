#include "tools/command/allreduce_run.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gradsync/core/error.hpp"
#include "gradsync/core/json_text.hpp"
#include "gradsync/testbed/record/require_finished.hpp"
#include "tools/command/backend_registry.hpp"
#include "tools/command/bench_conditions.hpp"
#include "tools/command/rank_bodies.hpp"
#include "tools/command/shipped_files.hpp"

namespace gradsync {
namespace {

/// A scenario with the file's cluster and otherwise defaults.
std::string scenario_text(const std::string& cluster_file) {
  nlohmann::ordered_json document = {{"name", "bench-allreduce"}};
  if (!cluster_file.empty()) document["cluster"] = cluster_file;
  return dump_json(document);
}

}  // namespace

void add_allreduce_run_options(CLI::App& command, AllreduceRunOptions& options) {
  add_scenario_options(command, options.scenario);
  command.add_option("--cluster", options.cluster, "Cluster description to simulate (sim only)")
      ->type_name("FILE")
      ->transform(shipped_path);
  command
      .add_option("-n,--iterations", options.iterations,
                  "Timed all-reduces per size (default: 20; 1 in sim, where all are alike)")
      ->check(CLI::PositiveNumber);
  command
      .add_option("-w,--warmup", options.warmup,
                  "Untimed all-reduces before them (default: 5; 0 in sim)")
      ->check(CLI::NonNegativeNumber);
  command
      .add_option("-d,--dtype", options.dtype, "float32, float64, float16, bfloat16, int32, ...")
      ->capture_default_str();
  command
      .add_option("-c,--check", options.bench.check,
                  "Whether to compare results with the exact sum (0 or 1)")
      ->capture_default_str();
}

PreparedAllreduceRun prepare_allreduce_run(const AllreduceRunOptions& options) {
  PreparedAllreduceRun run;
  run.scenario = parse_scenario(scenario_text(options.cluster), "--cluster", ".",
                                overrides_of(options.scenario));
  run.scenario.file.clear();  // it comes from the command line only
  check_bench_conditions(run.scenario);
  run.bench = options.bench;
  const bool simulated = require_backend(run.scenario.backend).descriptor.is_simulated;
  run.bench.iterations = options.iterations.value_or(simulated ? 1 : run.bench.iterations);
  run.bench.warmup = options.warmup.value_or(simulated ? 0 : run.bench.warmup);
  try {
    run.bench.dtype = parse_dtype(options.dtype);
  } catch (const std::invalid_argument& error) {
    throw Error(ErrorCode::kUsage, std::string("--dtype: ") + error.what());
  }
  run.program = fmt::format("gradsync bench allreduce on {}{}", run.scenario.backend,
                            describe_bench_conditions(run.scenario));
  return run;
}

BenchTable run_allreduce(const PreparedAllreduceRun& run,
                         const std::function<void(const BenchRow&)>& on_row) {
  BenchTable table;
  table.program = run.program;
  table.ranks = static_cast<int>(run.scenario.ranks);
  const RunOutcome outcome =
      require_backend(run.scenario.backend)
          .run(run.scenario, allreduce_body(run.bench), [&](const nlohmann::ordered_json& event) {
            table.rows.push_back(row_of_event(event));
            if (on_row) on_row(table.rows.back());
          });
  require_finished(outcome.reports);
  return table;
}

}  // namespace gradsync
