#include <algorithm>
#include <iostream>
#include <limits>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gradsync/core/error.hpp"
#include "gradsync/core/json_text.hpp"
#include "gradsync/predict/bench_log.hpp"
#include "gradsync/predict/ring_cluster.hpp"
#include "gradsync/predict/size_ranges.hpp"
#include "gradsync/testbed/record/files.hpp"
#include "tools/command/backend_registry.hpp"
#include "tools/command/cluster_fit.hpp"
#include "tools/command/invocation.hpp"
#include "tools/command/machine_check.hpp"
#include "tools/command/shipped_files.hpp"
#include "tools/command/simulated_bench.hpp"

namespace gradsync {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kNearEnough = 0.25;

struct FitOptions {
  std::string log;
  BenchLogOptions reading;
  std::optional<int> gpus_per_node;
  std::string first, last;
  std::vector<std::string> predict;
  std::string cluster;
  std::string against;
  std::string algorithm;
  std::vector<std::string> vary;
  std::string out;
};

std::optional<FitRange> range_of(const FitOptions& options, const BenchTable& table) {
  if (options.first.empty() && options.last.empty()) return std::nullopt;
  FitRange range{0, table.rows.back().bytes};
  if (!options.first.empty()) range.first = parse_bench_size(options.first);
  if (!options.last.empty()) range.last = parse_bench_size(options.last);
  return range;
}

/// Prints the piecewise fit's predictions for other sizes, with a warning for sizes that were not
/// measured.
void print_predictions(const PiecewiseFit& fit, const std::vector<std::string>& sizes) {
  bool extrapolated = false;
  for (const std::string& size : sizes) {
    const FitPrediction prediction = fit.predict(parse_bench_size(size));
    extrapolated |= prediction.extrapolated;
    std::cout << fmt::format("  {:>12}{:>14.4g} us{}\n", size, prediction.time.count() * 1e6,
                             prediction.extrapolated ? "  EXTRAPOLATED" : "");
  }
  if (!extrapolated) return;
  std::cerr << fmt::format(
      "warning: no size below {} or above {} bytes was measured. Times marked EXTRAPOLATED "
      "continue the nearest line beyond its data, and may be far off.\n",
      fit.segments().front().first, fit.segments().back().last);
}

/// The log as measurements on a scenario's cluster.
AccuracyTable as_measurements(const BenchTable& table, const FitOptions& options) {
  AccuracyTable measurements;
  measurements.file = options.log;
  measurements.name = options.log;
  measurements.scenario = Json::object();
  if (!options.algorithm.empty()) {
    measurements.scenario["communication"]["algorithm"] = options.algorithm;
  }
  for (const BenchRow& row : table.rows) {
    AccuracyRow measured;
    measured.what = size_text(row.bytes);
    measured.ranks = table.ranks;
    measured.bytes = row.bytes;
    measured.measured = row.median.value_or(row.time);
    measurements.rows.push_back(measured);
  }
  return measurements;
}

/// If a log used a part of each node, the description of that part: the GPUs it used and their
/// adapters.
Json as_used(Json cluster, int ranks_per_node) {
  const auto gpus = cluster.at("gpus_per_node").get<std::int64_t>();
  const bool can_shrink = cluster.at("node_topology") != "cube_mesh";  // it always has eight GPUs
  if (ranks_per_node <= 0 || ranks_per_node == gpus || !can_shrink) return cluster;
  const auto nics = cluster.at("nics_per_node").get<std::int64_t>();
  cluster["gpus_per_node"] = ranks_per_node;
  cluster["nics_per_node"] = std::clamp<std::int64_t>(nics * ranks_per_node / gpus, 1, nics);
  std::cerr << fmt::format("note: the log has {} ranks a node, of which the description has {}\n",
                           ranks_per_node, gpus);
  return cluster;
}

void print_number(const FittedNumber& number) {
  const char* remark = number.is_undetermined ? "  (the log does not determine it: as it was)"
                       : number.is_at_bound   ? "  (at the bound of what is possible: the log "
                                                "does not determine it)"
                                              : "";
  std::cout << fmt::format("cluster.{} = {} (was {}){}\n", number.key, number.text, number.start,
                           remark);
}

/// Prints the error of the description against the log it was fitted to. Returns whether it is
/// usable: a geometric mean error up to 25% in each range of the fitted sizes.
bool predicts_its_log(const AccuracyTable& table, const std::string& title, Bytes first,
                      Bytes last) {
  std::vector<AccuracyRow> fitted;
  for (const AccuracyRow& row : table.rows) {
    if (row.bytes >= first && row.bytes <= last) fitted.push_back(row);
  }
  std::cout << title << '\n' << describe(errors_by_size(table.rows));
  bool is_near = true;
  for (const RangeError& error : errors_by_size(fitted)) {
    if (error.geometric_mean <= kNearEnough) continue;
    is_near = false;
    std::cerr << fmt::format(
        "WARNING: the description misses the log it was made from by {:.0f}% ({}): do not use it "
        "there\n",
        error.geometric_mean * 100, error.range);
  }
  return is_near;
}

void write_cluster(const Json& cluster, const std::string& out) {
  if (out.empty()) {
    std::cout << dump_json(cluster, 2) << '\n';
  } else {
    write_file(out, dump_json(cluster, 2) + "\n");
    std::cout << fmt::format("cluster description: {}\n", out);
  }
}

/// Fits numbers of `base` by simulation.
int fit_description(const AccuracyTable& table, const Json& base, const FitOptions& options) {
  const std::vector<std::string> keys =
      options.vary.empty()
          ? keys_to_fit(base, static_cast<int>(table.rows.front().ranks), table.rows.size())
          : options.vary;
  const ClusterFit fit = fit_cluster(table, base, keys);
  for (const FittedNumber& number : fit.numbers) print_number(number);
  const bool is_near = predicts_its_log(
      fit.table,
      fmt::format("# simulated beside the log ({:.1f}% off as the description was):",
                  fit.error_before * 100),
      0, std::numeric_limits<Bytes>::max());
  write_cluster(fit.cluster, options.out);
  return is_near ? 0 : 1;
}

/// Fits a ring to the log's times.
int fit_ring(const BenchTable& table, const FitOptions& options) {
  const auto range = range_of(options, table);
  const int all_or_listed = table.ranks_per_node > 0 ? table.ranks_per_node : table.ranks;
  const RingCluster ring = fit_ring_cluster(table, options.gpus_per_node.value_or(all_or_listed),
                                            "fitted to " + options.log, range ? &*range : nullptr);
  std::cout << describe(ring, table.ranks);
  if (!find_backend("sim").is_built_in()) {
    write_cluster(ring.cluster, options.out);
    return 0;
  }
  AccuracyTable measured = as_measurements(table, options);
  measured.scenario["simulation"]["fidelity"] = "flow";
  simulate_table(measured, ring.cluster);
  const bool is_near =
      predicts_its_log(measured, "# simulated beside the log:", ring.range.first, ring.range.last);
  write_cluster(ring.cluster, options.out);
  return is_near ? 0 : 1;
}

int check_against(const AccuracyTable& table, const FitOptions& options, int ranks_per_node) {
  const Json cluster =
      as_used(cluster_with_defaults(options.against, "--against", "."), ranks_per_node);
  const MachineCheck check = check_machine(table, cluster, options.against);
  std::cout << check.text;
  return check.is_healthy ? 0 : 1;
}

/// Reads a table of scenarios/validation/, to fit its own description.
std::optional<AccuracyTable> as_published_table(const std::string& text, const std::string& file) {
  const Json json = try_parse_json(text);
  if (!json.is_object() || !json.contains("kind")) return std::nullopt;
  const AccuracyTable table = load_accuracy_table(file);
  if (table.is_training) {
    throw Error(ErrorCode::kUsage, file + " has step times, but fit needs all-reduces");
  }
  return table;
}

void print_heading(const BenchTable& table, const std::string& log) {
  const std::string nodes =
      table.nodes > 0 ? fmt::format(" on {} node{}", table.nodes, table.nodes > 1 ? "s" : "") : "";
  std::cout << fmt::format("# {}: {}, {} ranks{}{}{}, {} sizes\n", log, table.program, table.ranks,
                           nodes, table.device.empty() ? "" : ", ", table.device,
                           table.rows.size());
  for (const std::string& note : table.notes) std::cerr << fmt::format("note: {}\n", note);
}

int fit_published(const AccuracyTable& table, const FitOptions& options) {
  if (!options.against.empty()) return check_against(table, options, 0);
  const Json base = options.cluster.empty()
                        ? cluster_with_defaults(table.scenario.at("cluster"), options.log,
                                                table.file.parent_path().string())
                        : cluster_with_defaults(options.cluster, "--cluster", ".");
  return fit_description(table, base, options);
}

int fit(const FitOptions& options) {
  const std::string text = read_file(options.log);
  if (const auto published = as_published_table(text, options.log)) {
    return fit_published(*published, options);
  }
  const BenchTable table = read_bench_log(text, options.log, options.reading);
  print_heading(table, options.log);
  const int ranks_per_node = options.gpus_per_node.value_or(table.ranks_per_node);
  if (!options.against.empty()) {
    return check_against(as_measurements(table, options), options, ranks_per_node);
  }
  const PiecewiseFit piecewise(table.rows);
  std::cout << describe(piecewise, table.ranks);
  print_predictions(piecewise, options.predict);
  if (!options.cluster.empty()) {
    const Json base =
        as_used(cluster_with_defaults(options.cluster, "--cluster", "."), ranks_per_node);
    return fit_description(as_measurements(table, options), base, options);
  }
  if (!options.algorithm.empty()) {
    throw Error(ErrorCode::kUsage,
                "--algo says what a log was forced to; it needs the description of a cluster "
                "(--cluster or --against)");
  }
  return fit_ring(table, options);
}

}  // namespace

void add_fit_command(CLI::App& app, Invocation& invocation) {
  CLI::App* command = app.add_subcommand(
      "fit", "Fit a cluster description to a log of nccl-tests or gradsync bench");
  command->footer(
      "Without --cluster the description is a ring that takes as long as the log says; with it, a "
      "few\n"
      "numbers of a description are fitted so that the simulation does, whatever algorithm it "
      "takes.\n"
      "Ends with 1 if the result misses the log it was made from by more than 25%, or with "
      "--against\n"
      "if the machine is slower than the description.");
  auto options = std::make_shared<FitOptions>();
  command
      ->add_option("LOG", options->log,
                   "Log of all-reduces (text or JSON), or a table of scenarios/validation")
      ->required()
      ->transform(shipped_path);
  command->add_option("--ranks", options->reading.ranks, "Number of ranks, if the log does not say")
      ->check(CLI::Range(2, 1 << 20));
  command->add_option("--table", options->reading.table, "Which of several all-reduce tables")
      ->check(CLI::PositiveNumber);
  command->add_flag("--in-place", options->reading.in_place,
                    "Take the in-place columns (default: out-of-place, as published)");
  command
      ->add_option("--gpus-per-node", options->gpus_per_node,
                   "Ranks per node (default: as the log lists them, or all)")
      ->check(CLI::PositiveNumber);
  command->add_option("--from", options->first, "Smallest size to fit the description to");
  command->add_option("--to", options->last, "Largest size to fit the description to");
  command->add_option("--predict", options->predict, "Print the predicted times of these sizes")
      ->delimiter(',')
      ->type_name("SIZE,...");
  command->add_option("--cluster", options->cluster, "Description to start from")
      ->type_name("FILE")
      ->transform(shipped_path);
  command
      ->add_option("--against", options->against,
                   "Fit nothing: say whether the machine is slower than this description, and why")
      ->type_name("FILE")
      ->transform(shipped_path);
  command->add_option("--algo", options->algorithm, "Algorithm that the log was forced to")
      ->check(CLI::IsMember({"ring", "tree", "nvls", "nvls_tree"}));
  command
      ->add_option("--vary", options->vary,
                   "Its numbers to fit, four at the most (default: bandwidth and latencies)")
      ->delimiter(',')
      ->type_name("KEY,...");
  command
      ->add_option("--out", options->out, "Write the description here (default: standard output)")
      ->type_name("FILE");
  command->callback(
      [options, &invocation] { invocation.action = [options] { return fit(*options); }; });
}

}  // namespace gradsync
