#include "tools/command/cluster_fit.hpp"

#include <algorithm>
#include <variant>

#include <fmt/format.h>

#include "gradsync/core/error.hpp"
#include "gradsync/core/units.hpp"
#include "gradsync/predict/minimize.hpp"
#include "tools/command/simulated_bench.hpp"

namespace gradsync {
namespace {

using Json = nlohmann::ordered_json;

/// A positive number at a place in a description, in the form that it has there.
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

  double start() const { return value_; }
  std::string key() const { return key_; }

  /// Four digits are kept, here as in what is written down in the end.
  Json form(double value) const {
    const double kept = std::stod(fmt::format("{:.4g}", value));
    if (kind_ == Kind::kDuration) return format_duration(Seconds(kept));
    if (kind_ == Kind::kBandwidth) return format_bandwidth({kept});
    return kept;
  }
  void put(Json& cluster, double value) const { cluster[pointer_] = form(value); }

 private:
  enum class Kind { kDuration, kBandwidth, kPlain };

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
      throw Error(ErrorCode::kUsage,
                  fmt::format("\"{}\" is {}: give it a value to start from", key_, found.dump()));
    }
    if (value_ <= 0) value_ = kind_ == Kind::kDuration ? 10e-6 : 1;
  }

  std::string key_;
  Json::json_pointer pointer_;
  Kind kind_ = Kind::kPlain;
  double value_ = 0;
};

}  // namespace

ClusterFit fit_cluster(const AccuracyTable& table, const Json& cluster,
                       const std::vector<std::string>& keys) {
  if (keys.empty() || keys.size() > 2) {
    throw Error(ErrorCode::kUsage,
                "one or two numbers can be fitted; with more, anything would fit");
  }
  std::vector<Number> numbers;
  std::vector<double> start;
  for (const std::string& key : keys) {
    numbers.emplace_back(cluster, key);
    start.push_back(numbers.back().start());
  }
  ClusterFit fit;
  fit.table = table;
  const auto simulate = [&](const std::vector<double>& values) {
    fit.cluster = cluster;
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i].put(fit.cluster, values[i]);
    simulate_table(fit.table, fit.cluster);
    return weighted_error(fit.table.rows);
  };
  const std::vector<double> best = minimize(simulate, start);
  simulate(best);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const Json form = numbers[i].form(best[i]);
    fit.numbers.push_back(
        {numbers[i].key(), form.is_string() ? form.get<std::string>() : form.dump()});
  }
  return fit;
}

}  // namespace gradsync
