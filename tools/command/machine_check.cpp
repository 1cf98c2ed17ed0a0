#include "tools/command/machine_check.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "gradsync/core/error.hpp"
#include "gradsync/predict/outliers.hpp"
#include "gradsync/predict/size_ranges.hpp"
#include "tools/command/simulated_bench.hpp"

namespace gradsync {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kSlower = 1.25;

double ratio_of(const AccuracyRow& row) {
  return row.measured / row.simulated;
}

/// A range of sizes, from one size on or up to one, in which rows are slower than the description
/// by a factor.
struct Slowness {
  Bytes size = 0;
  double factor = 1;
};

double mean_ratio(std::vector<AccuracyRow>::const_iterator begin,
                  std::vector<AccuracyRow>::const_iterator end) {
  double sum = 0;
  for (auto row = begin; row != end; ++row) sum += std::log(ratio_of(*row));
  return std::exp(sum / static_cast<double>(end - begin));
}

/// Up to one row in five may be as fast as described.
template <class Row>
Row end_of_slow_rows(Row begin, Row end) {
  Row slow_end = begin;
  int fast = 0, all = 0;
  for (Row row = begin; row != end; ++row) {
    ++all;
    fast += ratio_of(*row) > kSlower ? 0 : 1;
    if (fast * 5 > all) break;
    if (ratio_of(*row) > kSlower) slow_end = row + 1;
  }
  return slow_end;
}

std::optional<Slowness> slow_from(const std::vector<AccuracyRow>& rows) {
  const auto first = end_of_slow_rows(rows.rbegin(), rows.rend()).base();
  if (first == rows.end()) return std::nullopt;
  return Slowness{first->bytes, mean_ratio(first, rows.end())};
}

std::optional<Slowness> slow_up_to(const std::vector<AccuracyRow>& rows) {
  const auto end = end_of_slow_rows(rows.begin(), rows.end());
  if (end == rows.begin()) return std::nullopt;
  return Slowness{(end - 1)->bytes, mean_ratio(rows.begin(), end)};
}

/// A variant of the current description with one limitation.
struct Explanation {
  std::string what;
  Json cluster;
  std::string algorithm;  ///< empty: the library's choice
};

std::vector<Explanation> explanations_of(const Json& cluster, std::int64_t ranks) {
  std::vector<Explanation> all;
  const auto nics = cluster.at("nics_per_node").get<std::int64_t>();
  const auto gpus = cluster.at("gpus_per_node").get<std::int64_t>();
  const bool is_nccl = cluster.at("library") == "nccl";
  const auto with = [&](const std::string& what, const char* pointer, const Json& value) {
    all.push_back({what, cluster, ""});
    all.back().cluster[Json::json_pointer(pointer)] = value;
  };
  if (ranks > gpus) {
    for (std::int64_t used = nics / 2; used >= 1; used /= 2) {
      with(fmt::format("adapters in use: {} of {}", used, nics), "/nics_per_node", used);
    }
    if (is_nccl && cluster.value("gpu_direct", true)) {
      with("no GPUDirect RDMA", "/gpu_direct", false);
    }
  }
  if (is_nccl) {
    for (const char* algorithm : {"ring", "tree"}) {
      all.push_back(
          {fmt::format("algorithm {} in place of NCCL's choice", algorithm), cluster, algorithm});
    }
    for (const auto& [name, bandwidth] : {std::pair{"PCIe 5.0 x16", "50GBps"},
                                          {"PCIe 4.0 x16", "24GBps"},
                                          {"PCIe 3.0 x16", "12GBps"}}) {
      with(fmt::format("{} in place of NVLink", name), "/intra_node/bandwidth", bandwidth);
    }
  }
  return all;
}

/// The changes that improve the prediction, best first, with the remaining error.
std::vector<std::pair<double, std::string>> explain(const AccuracyTable& table,
                                                    const Json& cluster) {
  const double error = geometric_mean_error(table.rows);
  std::vector<std::pair<double, std::string>> explained;
  for (const Explanation& explanation : explanations_of(cluster, table.rows.front().ranks)) {
    AccuracyTable other = table;
    if (!explanation.algorithm.empty()) {
      other.scenario["communication"]["algorithm"] = explanation.algorithm;
    }
    try {
      simulate_table(other, explanation.cluster);
    } catch (const ConfigError&) {
      continue;  // the machine does not have this algorithm
    }
    const double left = geometric_mean_error(other.rows);
    if (left < error * 0.7) explained.emplace_back(left, explanation.what);
  }
  std::sort(explained.begin(), explained.end());
  return explained;
}

std::string percent(double value) {
  return fmt::format("{:.0f}%", value * 100);
}

}  // namespace

BytesPerSecond promised_bus_bandwidth(const Json& cluster, std::int64_t ranks) {
  const auto bandwidth = [&](const char* link) {
    return parse_bandwidth(cluster.at(link).at("bandwidth").get<std::string>()).value;
  };
  double inside = bandwidth("intra_node");
  const auto gpus = cluster.at("gpus_per_node").get<std::int64_t>();
  const std::string topology = cluster.value("node_topology", "switch");
  if (topology == "cube_mesh") inside *= 6;  // NVLinks per GPU
  if (topology == "full_mesh") inside *= static_cast<double>(std::min(gpus, ranks) - 1);
  if (ranks <= gpus) return {inside};
  const auto nics = cluster.at("nics_per_node").get<double>();
  return {std::min(inside, bandwidth("inter_node") * nics)};
}

std::vector<std::string> outlier_signs_of(const AccuracyTable& table, const Json& cluster) {
  std::vector<MeasuredTime> measured;
  for (const AccuracyRow& row : table.rows) {
    measured.push_back({static_cast<int>(row.ranks), row.bytes, row.measured});
  }
  return outlier_signs(measured, promised_bus_bandwidth(cluster, table.rows.front().ranks));
}

MachineCheck check_machine(AccuracyTable table, const Json& cluster,
                           const std::string& description) {
  table.scenario["simulation"]["fidelity"] = "flow";
  std::stable_sort(table.rows.begin(), table.rows.end(),
                   [](const AccuracyRow& a, const AccuracyRow& b) { return a.bytes < b.bytes; });
  simulate_table(table, cluster);
  MachineCheck check;
  const auto from = slow_from(table.rows);
  const auto up_to = slow_up_to(table.rows);
  if (from) {
    const bool always = from->size == table.rows.front().bytes;
    check.text +=
        fmt::format("your machine is {:.1f} times slower than {}{}\n", from->factor, description,
                    always ? " at all sizes" : fmt::format(" from {} on", size_text(from->size)));
  }
  if (up_to && (!from || up_to->size < from->size)) {
    check.text += fmt::format(
        "your machine is {:.1f} times slower than {} up to {}: latency, not bandwidth\n",
        up_to->factor, description, size_text(up_to->size));
  }
  if (from || up_to) {
    check.is_healthy = false;
    const auto explained = explain(table, cluster);
    for (std::size_t i = 0; i < std::min<std::size_t>(explained.size(), 3); ++i) {
      check.text +=
          fmt::format("  {}: would explain it, to {} where it is {} off now\n", explained[i].second,
                      percent(explained[i].first), percent(geometric_mean_error(table.rows)));
    }
    if (explained.empty()) check.text += "  no single change to the description explains it\n";
  }
  for (const std::string& sign : outlier_signs_of(table, cluster)) {
    check.is_healthy = false;
    check.text += "a sick machine or a disturbed run: " + sign + "\n";
  }
  if (check.is_healthy) {
    check.text = fmt::format("your machine is as fast as {}: {} off in the geometric mean\n",
                             description, percent(geometric_mean_error(table.rows)));
  }
  return check;
}

}  // namespace gradsync
