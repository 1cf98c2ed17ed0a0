#include <algorithm>
#include <iostream>
#include <memory>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gradsync/core/error.hpp"
#include "gradsync/core/json_text.hpp"
#include "gradsync/predict/repeats.hpp"
#include "gradsync/predict/ring_cluster.hpp"
#include "gradsync/testbed/record/files.hpp"
#include "gradsync/testbed/record/statistics.hpp"
#include "tools/command/allreduce_run.hpp"
#include "tools/command/backend_registry.hpp"
#include "tools/command/invocation.hpp"

namespace gradsync {
namespace {

struct CalibrateOptions {
  AllreduceRunOptions run;
  std::string min_bytes = "64K";
  std::string max_bytes = "32M";
  int gpus_per_node = 0;
  int repeats = 3;
  bool only_network = false;
  std::string out = "cluster.json";
};

/// Median compute time of a step, over ranks and all steps except the first, which warms up caches.
double median_compute_seconds(const std::vector<RankReport>& reports) {
  std::vector<double> times;
  for (const RankReport& report : reports) {
    for (const StepRecord& step : report.steps) {
      if (step.step == 0) continue;
      times.push_back((step.backward_compute_end - step.data_end).count() +
                      (step.optimizer_end - step.backward_end).count());
    }
  }
  if (times.empty()) throw Error(ErrorCode::kInternal, "no rank has trained two steps");
  std::sort(times.begin(), times.end());
  return percentile(times, 50);
}

/// Trains the default transformer for a few steps on the real backend and in the simulator, which
/// charges its operations at a known rate. The real rate follows by proportion.
FlopsPerSecond measure_compute_rate(const Scenario& bench) {
  const nlohmann::ordered_json document = {{"name", "calibrate"},
                                           {"backend", bench.backend},
                                           {"ranks", bench.ranks},
                                           {"data", {{"samples", bench.ranks * 32 * 8}}}};
  Scenario scenario = parse_scenario(dump_json(document), "calibrate", ".");
  const RankBody body = training_body(scenario);
  const RunOutcome real = require_backend(scenario.backend).run(scenario, body);
  const double real_seconds = median_compute_seconds(real.reports);
  scenario.backend = "sim";
  const RunOutcome simulated = require_backend("sim").run(scenario, body);
  return {scenario.cluster.compute_rate.value * median_compute_seconds(simulated.reports) /
          real_seconds};
}

/// Repeats the benchmark: a machine's noise shows between runs, not within one.
RepeatedBench measure_network(const PreparedAllreduceRun& prepared, int repeats) {
  const int ranks = static_cast<int>(prepared.scenario.ranks);
  std::vector<BenchTable> runs;
  for (int run = 0; run < repeats; ++run) {
    std::cout << bench_heading(prepared.program, ranks) << std::flush;
    runs.push_back(run_allreduce(
        prepared, [&](const BenchRow& row) { std::cout << bench_line(row, ranks) << std::flush; }));
  }
  return combine_runs(runs);
}

/// Prints the signs of noise; returns true if there are none.
bool warn_of_noise(const std::vector<std::string>& signs) {
  for (const std::string& sign : signs) std::cerr << "WARNING: " << sign << '\n';
  if (!signs.empty()) {
    std::cerr
        << "WARNING: this says little of the machine: let nothing else run, and measure again "
           "with more iterations (-n) and runs (--repeats)\n";
  }
  return signs.empty();
}

int calibrate(const CalibrateOptions& options) {
  AllreduceRunOptions run = options.run;
  run.bench.min_bytes = parse_bench_size(options.min_bytes);
  run.bench.max_bytes = parse_bench_size(options.max_bytes);
  const PreparedAllreduceRun prepared = prepare_allreduce_run(run);
  const Scenario& scenario = prepared.scenario;
  if (require_backend(scenario.backend).descriptor.is_simulated) {
    throw Error(ErrorCode::kUsage,
                "calibrate measures a real backend; \"" + scenario.backend + "\" is simulated");
  }
  const int ranks = static_cast<int>(scenario.ranks);
  const RepeatedBench bench = measure_network(prepared, options.repeats);
  std::cout << describe(PiecewiseFit(bench.table.rows), ranks);
  RingCluster ring =
      fit_ring_cluster(bench.table, options.gpus_per_node > 0 ? options.gpus_per_node : ranks,
                       fmt::format("{} on {} ranks here", scenario.backend, ranks));
  std::cout << describe(ring, ranks);
  std::vector<std::string> remarks = ranges_of(ring, bench);
  for (const std::string& range : remarks) std::cout << "# " << range << '\n';
  const std::vector<std::string> noise = signs_of_noise(bench, ring);
  for (const std::string& sign : noise) remarks.push_back("not to be trusted: " + sign);
  ring.cluster["//"] = remarks;
  if (!options.only_network && find_backend("sim").is_built_in()) {
    const FlopsPerSecond rate = measure_compute_rate(scenario);
    ring.cluster["compute_rate"] =
        format_compute_rate({std::stod(fmt::format("{:.4g}", rate.value))});
    std::cout << fmt::format("# compute: {:.4g} Gflop/s a rank, all {} at once\n", rate.value / 1e9,
                             ranks);
  }
  write_file(options.out, dump_json(ring.cluster, 2) + "\n");
  std::cout << fmt::format("cluster description: {} (in a scenario: \"cluster\": \"{}\")\n",
                           options.out, options.out);
  return warn_of_noise(noise) ? 0 : 1;
}

}  // namespace

void add_calibrate_command(CLI::App& app, Invocation& invocation) {
  CLI::App* command = app.add_subcommand(
      "calibrate",
      "Measure all-reduces and compute on this machine, and write a cluster description");
  command->footer(
      "Nothing else should run on the machine while it measures. Ends with 1 if the times are too "
      "noisy\nto be trusted; the description is written all the same, and says so.");
  auto options = std::make_shared<CalibrateOptions>();
  add_allreduce_run_options(*command, options->run);
  command->add_option("-b,--min-bytes", options->min_bytes, "Smallest size")->capture_default_str();
  command->add_option("-e,--max-bytes", options->max_bytes, "Largest size")->capture_default_str();
  command->add_option("-f,--factor", options->run.bench.factor, "Factor from one size to the next")
      ->capture_default_str();
  command->add_option(
      "--gpus-per-node", options->gpus_per_node,
      "Ranks per node in the description (default: all; 1: each rank is a machine)");
  command
      ->add_option("--repeats", options->repeats,
                   "Runs of the benchmark, each with processes of its own; medians are taken")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  command->add_flag("--only-network", options->only_network,
                    "Do not measure compute (replayed models have their times in their profiles)");
  command->add_option("--out", options->out, "File to write")
      ->type_name("FILE")
      ->capture_default_str();
  command->callback(
      [options, &invocation] { invocation.action = [options] { return calibrate(*options); }; });
}

}  // namespace gradsync
