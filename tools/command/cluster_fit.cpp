#include "tools/command/cluster_fit.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "gradsync/core/error.hpp"
#include "gradsync/core/json_text.hpp"
#include "gradsync/core/units.hpp"
#include "gradsync/predict/minimize.hpp"
#include "tools/command/simulated_bench.hpp"

namespace gradsync {
namespace {

using Json = nlohmann::ordered_json;

/// A positive number in a description, in the notation used there.
class Number {
 public:
  Number(const Json& cluster, const std::string& key) : key_(key), pointer_("/" + key) {
    std::string path = "/" + key;
    std::replace(path.begin(), path.end(), '.', '/');
    pointer_ = Json::json_pointer(path);
    if (!cluster.contains(pointer_)) {
      throw Error(ErrorCode::kUsage, "the cluster has no number \"" + key + "\" to fit");
    }
    read(cluster.at(pointer_));
  }

  std::string key() const { return key_; }

  /// The physically possible range, and the description's value.
  BoundedNumber bounded() const {
    const auto [least, most] = bounds();
    return {std::clamp(value_, least, most), least, most};
  }

  /// Four digits, as in the final output.
  Json form(double value) const {
    const double kept = std::stod(fmt::format("{:.4g}", value));
    if (kind_ == Kind::kDuration) return format_duration(Seconds(kept));
    if (kind_ == Kind::kBandwidth) return format_bandwidth({kept});
    return kept;
  }
  void put(Json& cluster, double value) const { cluster[pointer_] = form(value); }
  std::string text(double value) const {
    const Json json = form(value);
    return json.is_string() ? json.get<std::string>() : dump_json(json);
  }

 private:
  enum class Kind { kDuration, kBandwidth, kPlain };

  std::pair<double, double> bounds() const {
    if (kind_ == Kind::kBandwidth) {
      // NVLink 6 has 1.8 TB/s per GPU, a 1.6 Tb/s adapter has 200 GB/s.
      return {1e6, key_.starts_with("inter_node") ? 200e9 : 2e12};
    }
    if (kind_ == Kind::kDuration) return {1e-8, 0.1};
    if (key_ == "software.hop_latency_scale") return {0.25, 10};
    return {value_ / 8, value_ * 8};
  }

  void read(const Json& found) {
    if (found.is_number()) {
      kind_ = Kind::kPlain;
      value_ = found.get<double>();
    } else if (found.is_string()) {
      try {
        value_ = parse_duration(found.get<std::string>()).count();
        kind_ = Kind::kDuration;
      } catch (const QuantityError&) {
        value_ = parse_bandwidth(found.get<std::string>()).value;
        kind_ = Kind::kBandwidth;
      }
    } else {
      throw Error(ErrorCode::kUsage, fmt::format("\"{}\" is {}: give it a value to start from",
                                                 key_, dump_json(found)));
    }
    if (value_ <= 0) value_ = kind_ == Kind::kDuration ? 10e-6 : 1;
  }

  std::string key_;
  Json::json_pointer pointer_;
  Kind kind_ = Kind::kPlain;
  double value_ = 0;
};

/// In units of the error, a mean of |ln(simulated / measured)|: smaller differences are ignored.
constexpr double kNoDifference = 0.003;
/// The gain in the error of the whole table below which it does not speak for other numbers.
constexpr double kLeastGain = 0.01;
/// How much worse a row may become, and the error below which it does not matter.
constexpr double kWorse = 0.02;
constexpr double kNearEnough = 0.05;
/// The gain that a number must achieve to move by a factor of e.
constexpr double kPull = 0.002;

class Fitter {
 public:
  Fitter(const AccuracyTable& table, const Json& cluster, const std::vector<std::string>& keys)
      : cluster_(cluster) {
    fit_.table = table;
    fit_.table.scenario["simulation"]["fidelity"] = "flow";
    for (const std::string& key : keys) numbers_.emplace_back(cluster, key);
    for (const Number& number : numbers_) bounded_.push_back(number.bounded());
  }

  ClusterFit run() {
    simulate_table(fit_.table, cluster_);
    fit_.error_before = geometric_mean_error(fit_.table.rows);
    const std::vector<AccuracyRow> before = fit_.table.rows;
    std::vector<double> best =
        minimize([this](const std::vector<double>& values) { return cost(values); }, bounded_);
    std::vector<bool> is_undetermined = put_back(best);
    simulate(best);
    if (!is_supported(before, fit_.table.rows)) {
      fit_.cluster = cluster_;
      simulate_table(fit_.table, cluster_);
      for (std::size_t i = 0; i < best.size(); ++i) {
        is_undetermined[i] = is_undetermined[i] || best[i] != bounded_[i].start;
        best[i] = bounded_[i].start;
      }
    }
    for (std::size_t i = 0; i < numbers_.size(); ++i) {
      const bool at_bound = !is_undetermined[i] && (best[i] < bounded_[i].least * 1.02 ||
                                                    best[i] > bounded_[i].most / 1.02);
      fit_.numbers.push_back({numbers_[i].key(), numbers_[i].text(best[i]),
                              numbers_[i].text(bounded_[i].start), is_undetermined[i], at_bound});
    }
    return fit_;
  }

 private:
  double simulate(const std::vector<double>& values) {
    fit_.cluster = cluster_;
    for (std::size_t i = 0; i < numbers_.size(); ++i) numbers_[i].put(fit_.cluster, values[i]);
    simulate_table(fit_.table, fit_.cluster);
    return weighted_error(fit_.table.rows);
  }

  double cost(const std::vector<double>& values) {
    double pull = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      pull += std::pow(std::log(values[i] / bounded_[i].start), 2);
    }
    return simulate(values) + kPull * pull;
  }

  /// Whether the table supports the fitted numbers: they must improve it as a whole, and make no
  /// row worse. A number that trades one size for another fits this log, and misses the sizes
  /// between.
  static bool is_supported(const std::vector<AccuracyRow>& before,
                           const std::vector<AccuracyRow>& after) {
    if (weighted_error(after) > weighted_error(before) - kLeastGain) return false;
    const auto miss = [](const AccuracyRow& row) {
      return std::abs(std::log(row.simulated / row.measured));
    };
    for (std::size_t i = 0; i < before.size(); ++i) {
      if (miss(after[i]) > std::max(miss(before[i]) + kWorse, kNearEnough)) return false;
    }
    return true;
  }

  /// Resets numbers whose start value explains the table as well.
  std::vector<bool> put_back(std::vector<double>& best) {
    std::vector<bool> is_undetermined;
    for (std::size_t i = 0; i < best.size(); ++i) {
      const double least = simulate(best);
      std::vector<double> other = best;
      other[i] = bounded_[i].start;
      const bool makes_no_difference = simulate(other) < least + kNoDifference;
      const bool has_moved = std::abs(std::log(best[i] / bounded_[i].start)) > 0.1;
      is_undetermined.push_back(makes_no_difference && has_moved);
      if (makes_no_difference) best = other;
    }
    return is_undetermined;
  }

  Json cluster_;
  std::vector<Number> numbers_;
  std::vector<BoundedNumber> bounded_;
  ClusterFit fit_;
};

}  // namespace

ClusterFit fit_cluster(const AccuracyTable& table, const Json& cluster,
                       const std::vector<std::string>& keys) {
  if (keys.empty() || keys.size() > 4) {
    throw Error(ErrorCode::kUsage, "one to four numbers can be fitted: more would fit anything");
  }
  return Fitter(table, cluster, keys).run();
}

std::vector<std::string> keys_to_fit(const Json& cluster, int ranks, std::size_t rows) {
  const bool one_node = cluster.at("gpus_per_node").get<int>() >= ranks;
  const std::string links = one_node ? "intra_node" : "inter_node";
  std::vector<std::string> keys = {links + ".bandwidth"};
  if (cluster.at("library") == "nccl") {
    keys.insert(keys.end(), {"software.per_operation", "software.hop_latency_scale"});
  } else {
    keys.push_back(links + ".latency");
  }
  // At most one number per three rows; with more, the numbers would absorb the simulation's own
  // errors.
  keys.resize(std::clamp<std::size_t>(rows / 3, 1, keys.size()));
  return keys;
}

}  // namespace gradsync
