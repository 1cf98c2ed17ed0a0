#include "gradsync/predict/ring_cluster.hpp"

#include <algorithm>
#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gradsync/core/error.hpp"

namespace gradsync {
namespace {

constexpr Bytes kGradientSizes = 64 * 1024;

std::vector<BenchRow> rows_in(const std::vector<BenchRow>& rows, const FitRange& range) {
  std::vector<BenchRow> inside;
  for (const BenchRow& row : rows) {
    if (row.bytes >= range.first && row.bytes <= range.last) inside.push_back(row);
  }
  return inside;
}

/// Four digits; more would be noise.
double rounded(double value) {
  return std::stod(fmt::format("{:.4g}", value));
}

}  // namespace

RingCluster fit_ring_cluster(const BenchTable& table, int ranks_per_node, const std::string& name,
                             const FitRange* range) {
  const int nodes = (table.ranks + ranks_per_node - 1) / ranks_per_node;
  RingCluster fit;
  fit.range = {0, std::numeric_limits<Bytes>::max()};
  if (range != nullptr) {
    fit.range = *range;
  } else if (rows_in(table.rows, {kGradientSizes, fit.range.last}).size() >= 3) {
    fit.range.first = kGradientSizes;
  }
  fit.line = PiecewiseFit(rows_in(table.rows, fit.range), 1).segments().front();
  fit.range = {fit.line.first, fit.line.last};
  if (fit.line.seconds_per_byte.value <= 0) {
    throw Error(ErrorCode::kUsage,
                "the times do not grow with the size: measure larger sizes to see the bandwidth");
  }
  const double n = table.ranks;
  const double steps = 2 * (n - 1);
  fit.hop.latency = Seconds(fit.line.latency.value / steps);
  fit.hop.bandwidth = {steps / n / fit.line.seconds_per_byte.value};

  using Json = nlohmann::ordered_json;
  const std::string bandwidth = format_bandwidth({rounded(fit.hop.bandwidth.value)});
  const Json link = {{"bandwidth", bandwidth},
                     {"latency", format_duration(Seconds(rounded(fit.hop.latency.count() / 2)))}};
  fit.cluster = {{"name", name}, {"library", "gloo"}, {"gpus_per_node", ranks_per_node}};
  if (nodes > 1) {
    // The slowest hop of a ring, the one between nodes, limits its speed. Hops inside a node are at
    // least as fast, but the log does not say how fast.
    fit.cluster["intra_node"] = {{"bandwidth", bandwidth}, {"latency", "0s"}};
    fit.cluster["inter_node"] = link;
  } else {
    fit.cluster["intra_node"] = link;
  }
  return fit;
}

std::string describe(const RingCluster& fit, int ranks) {
  return fmt::format(
      "# as a ring: {:.4g} us and {:.4g} GB/s per hop, from {} sizes between {} and {} bytes; "
      "residuals: rms {:.1f}%, worst {:+.1f}%\n# sizes outside this range, and numbers of ranks "
      "other than {}, are extrapolated\n",
      fit.hop.latency.count() * 1e6, fit.hop.bandwidth.value / 1e9, fit.line.points,
      fit.range.first, fit.range.last, fit.line.rms_residual * 100, fit.line.worst_residual * 100,
      ranks);
}

}  // namespace gradsync
