#include <iostream>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gradsync/core/error.hpp"
#include "gradsync/predict/bench_log.hpp"
#include "gradsync/predict/ring_cluster.hpp"
#include "gradsync/testbed/record/files.hpp"
#include "tools/command/cluster_fit.hpp"
#include "tools/command/invocation.hpp"

namespace gradsync {
namespace {

using Json = nlohmann::ordered_json;

struct FitOptions {
  std::string log;
  std::optional<int> ranks;
  std::optional<int> gpus_per_node;
  std::string first, last;
  std::vector<std::string> predict;
  std::string cluster;
  std::vector<std::string> vary = {"software.per_operation", "intra_node.bandwidth"};
  std::string out;
};

std::optional<FitRange> range_of(const FitOptions& options, const BenchTable& table) {
  if (options.first.empty() && options.last.empty()) return std::nullopt;
  FitRange range{0, table.rows.back().bytes};
  if (!options.first.empty()) range.first = parse_bench_size(options.first);
  if (!options.last.empty()) range.last = parse_bench_size(options.last);
  return range;
}

/// What the piecewise fit says of other sizes; those beyond the measured ones with a warning.
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

/// The log as a table of measurements on a scenario's cluster.
AccuracyTable as_measurements(const BenchTable& table, const std::string& log) {
  AccuracyTable measurements;
  measurements.file = log;
  measurements.name = log;
  measurements.scenario = Json::object();
  for (const BenchRow& row : table.rows) {
    AccuracyRow measured;
    measured.what = std::to_string(row.bytes);
    measured.ranks = table.ranks;
    measured.bytes = row.bytes;
    measured.measured = row.median.value_or(row.time);
    measurements.rows.push_back(measured);
  }
  return measurements;
}

/// The description with every default filled in: any number of it can be fitted. The number of
/// nodes stays what the ranks of each row need.
Json with_defaults(const Json& cluster, const std::string& file, const std::string& folder) {
  const Json document = {{"cluster", cluster}, {"backend", "sim"}, {"ranks", 2}};
  Json complete = to_json(parse_scenario(document.dump(), file, folder)).at("cluster");
  complete.erase("nodes");
  return complete;
}

Json fit_by_simulation(const AccuracyTable& table, const Json& base,
                       const std::vector<std::string>& vary) {
  const ClusterFit fit = fit_cluster(table, base, vary);
  for (const FittedNumber& number : fit.numbers) {
    std::cout << fmt::format("cluster.{} = {}\n", number.key, number.text);
  }
  std::cout << accuracy_text({fit.table}, true);
  return fit.cluster;
}

/// A table of scenarios/validation/: the numbers of its own description.
std::optional<AccuracyTable> as_published_table(const std::string& text, const std::string& file) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object() || !json.contains("kind")) return std::nullopt;
  const AccuracyTable table = load_accuracy_table(file);
  if (table.is_training) {
    throw Error(ErrorCode::kUsage, file + " has step times, but fit needs all-reduces");
  }
  return table;
}

void write_cluster(const Json& cluster, const std::string& out) {
  if (out.empty()) {
    std::cout << cluster.dump(2) << '\n';
  } else {
    write_file(out, cluster.dump(2) + "\n");
    std::cout << fmt::format("cluster description: {}\n", out);
  }
}

int fit(const FitOptions& options) {
  const std::string text = read_file(options.log);
  if (const auto published = as_published_table(text, options.log)) {
    const Json base = with_defaults(published->scenario.at("cluster"), options.log,
                                    published->file.parent_path().string());
    write_cluster(fit_by_simulation(*published, base, options.vary), options.out);
    return 0;
  }
  const BenchTable table = read_bench_log(text, options.log, options.ranks);
  std::cout << fmt::format("# {}: {}, {} ranks, {} sizes\n", options.log, table.program,
                           table.ranks, table.rows.size());
  const PiecewiseFit piecewise(table.rows);
  std::cout << describe(piecewise, table.ranks);
  print_predictions(piecewise, options.predict);
  if (options.cluster.empty()) {
    const auto range = range_of(options, table);
    const RingCluster ring =
        fit_ring_cluster(table, options.gpus_per_node.value_or(table.ranks),
                         "fitted to " + options.log, range ? &*range : nullptr);
    std::cout << describe(ring, table.ranks);
    write_cluster(ring.cluster, options.out);
  } else {
    const Json base = with_defaults(options.cluster, "--cluster", ".");
    write_cluster(fit_by_simulation(as_measurements(table, options.log), base, options.vary),
                  options.out);
  }
  return 0;
}

}  // namespace

void add_fit_command(CLI::App& app, Invocation& invocation) {
  CLI::App* command = app.add_subcommand(
      "fit", "Fit a cluster description to a log of nccl-tests or gradsync bench");
  command->footer(
      "Without --cluster, the description is a ring that takes as long as the log says. With "
      "--cluster, two\nnumbers of that description are fitted through the simulation, whichever "
      "algorithm it chooses.");
  auto options = std::make_shared<FitOptions>();
  command
      ->add_option("LOG", options->log,
                   "Log of all-reduces (text or JSON), or a table of scenarios/validation")
      ->required();
  command->add_option("--ranks", options->ranks, "Number of ranks, if the log does not say")
      ->check(CLI::Range(2, 1 << 20));
  command->add_option("--gpus-per-node", options->gpus_per_node, "Ranks per node (default: all)")
      ->check(CLI::PositiveNumber);
  command->add_option("--from", options->first, "Smallest size to fit the description to");
  command->add_option("--to", options->last, "Largest size to fit the description to");
  command->add_option("--predict", options->predict, "Print the predicted times of these sizes")
      ->delimiter(',')
      ->type_name("SIZE,...");
  command->add_option("--cluster", options->cluster, "Description to start from")
      ->type_name("FILE");
  command->add_option("--vary", options->vary, "The numbers of the description to fit, at most two")
      ->delimiter(',')
      ->type_name("KEY,KEY")
      ->capture_default_str();
  command
      ->add_option("--out", options->out, "Write the description here (default: standard output)")
      ->type_name("FILE");
  command->callback(
      [options, &invocation] { invocation.action = [options] { return fit(*options); }; });
}

}  // namespace gradsync
