#include "gradsync/predict/repeats.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "gradsync/predict/outliers.hpp"
#include "gradsync/testbed/record/statistics.hpp"

namespace gradsync {
namespace {

constexpr double kMostSpread = 0.2;
constexpr double kMostResidual = 0.25;

}  // namespace

Seconds median_of(std::vector<Seconds> times) {
  std::sort(times.begin(), times.end());
  const std::size_t half = times.size() / 2;
  return times.size() % 2 == 1 ? times[half] : (times[half - 1] + times[half]) / 2;
}

RepeatedBench combine_runs(const std::vector<BenchTable>& runs) {
  RepeatedBench result;
  result.table = runs.front();
  std::vector<double> spreads;
  for (std::size_t i = 0; i < result.table.rows.size(); ++i) {
    std::vector<Seconds> times, medians;
    for (const BenchTable& run : runs) {
      times.push_back(run.rows.at(i).time);
      medians.push_back(run.rows[i].median.value_or(run.rows[i].time));
    }
    const Seconds median = median_of(medians);
    const auto [least, most] = std::minmax_element(medians.begin(), medians.end());
    spreads.push_back((*most - *least) / median);
    result.table.rows[i].time = median_of(times);
    result.table.rows[i].median = median;
  }
  std::sort(spreads.begin(), spreads.end());
  result.spread = percentile(spreads, 50);
  return result;
}

std::vector<std::string> signs_of_noise(const RepeatedBench& bench, const RingCluster& ring) {
  std::vector<std::string> signs;
  if (bench.spread > kMostSpread) {
    signs.push_back(
        fmt::format("the runs differ by {:.0f}% (median over sizes)", bench.spread * 100));
  }
  std::vector<MeasuredTime> times;
  for (const BenchRow& row : bench.table.rows) {
    times.push_back({bench.table.ranks, row.bytes, row.median.value_or(row.time)});
  }
  for (std::string& sign : outlier_signs(times, BytesPerSecond{})) signs.push_back(std::move(sign));
  if (ring.line.rms_residual > kMostResidual) {
    signs.push_back(fmt::format("the times are {:.0f}% rms off the line of a ring",
                                ring.line.rms_residual * 100));
  }
  return signs;
}

std::vector<std::string> ranges_of(const RingCluster& ring, const RepeatedBench& bench) {
  const double steps = 2.0 * (bench.table.ranks - 1);
  const double slope = ring.line.seconds_per_byte.value;
  const double margin = ring.line.seconds_per_byte.margin;
  const auto bandwidth = [&](double seconds_per_byte) {
    return steps / bench.table.ranks / seconds_per_byte / 1e9;
  };
  const std::string link = ring.cluster.contains("inter_node") ? "inter_node" : "intra_node";
  const std::string most =
      slope > margin ? fmt::format("{:.4g} GB/s", bandwidth(slope - margin)) : "any";
  const double latency = ring.line.latency.value, spread = ring.line.latency.margin;
  const auto each = [&](double seconds) { return std::max(0.0, seconds) / steps / 2 * 1e6; };
  return {
      fmt::format("{}.bandwidth: {:.4g} GB/s to {} (95%)", link, bandwidth(slope + margin), most),
      fmt::format("{}.latency: {:.4g} us to {:.4g} us (95%)", link, each(latency - spread),
                  each(latency + spread)),
      fmt::format("runs differ by {:.0f}%, residuals {:.0f}% rms", bench.spread * 100,
                  ring.line.rms_residual * 100)};
}

}  // namespace gradsync
