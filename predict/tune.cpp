#include "predict/tune.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "engine/core/error.hpp"

namespace gradsync {
namespace {

constexpr double kMiB = 1024.0 * 1024.0;
const std::string kDefault = "null";

double cap_of(const std::string& value) {
  return value == kDefault ? 0 : std::stod(value);
}

/// Every number once, whatever its spelling: 25 and 25.0 are the same cap.
bool is_tried(const std::vector<TuneTrial>& trials, const std::string& value) {
  return std::any_of(trials.begin(), trials.end(), [&](const TuneTrial& trial) {
    return trial.value == value ||
           (value != kDefault && trial.value != kDefault && cap_of(trial.value) == cap_of(value));
  });
}

std::vector<std::string> first_values(const std::string& baseline, Bytes model_bytes) {
  std::vector<std::string> values = {baseline, kDefault};
  const double whole = static_cast<double>(model_bytes) / kMiB;
  for (double power = 1;; power *= 10) {
    for (const double factor : {1.0, 2.0, 5.0}) {
      // 25 in place of 20: the value that PyTorch's default has.
      const double cap = factor * power == 20 ? 25 : factor * power;
      values.push_back(fmt::format("{:g}", cap));
      if (cap >= whole) return values;
    }
  }
}

double two_digits(double value) {
  const double unit = std::pow(10, std::floor(std::log10(value)) - 1);
  return std::round(value / unit) * unit;
}

bool completed(const TuneTrial& trial) {
  return trial.result.outcome == "completed";
}

/// The shortest step; among equals the smallest cap (trials are sorted by it).
const TuneTrial* best_of(const std::vector<TuneTrial>& trials) {
  double shortest = std::numeric_limits<double>::infinity();
  for (const TuneTrial& trial : trials) {
    if (completed(trial)) shortest = std::min(shortest, trial.result.step_p50);
  }
  for (const TuneTrial& trial : trials) {
    if (completed(trial) && trial.result.step_p50 <= shortest * 1.001) return &trial;
  }
  return nullptr;
}

std::vector<std::string> values_around(const std::vector<TuneTrial>& trials) {
  std::vector<std::string> values;
  const TuneTrial* best = best_of(trials);
  if (best == nullptr || best->value == kDefault) return values;
  const auto at = static_cast<std::size_t>(best - trials.data());
  const auto between = [&](const TuneTrial& other) {
    if (other.value == kDefault) return;
    values.push_back(
        fmt::format("{:g}", two_digits(std::sqrt(cap_of(best->value) * cap_of(other.value)))));
  };
  if (at > 0) between(trials[at - 1]);
  if (at + 1 < trials.size()) between(trials[at + 1]);
  return values;
}

std::string ms(double seconds) {
  const double value = seconds * 1e3;
  return fmt::format("{:.{}f} ms", value, value < 1 ? 3 : value < 100 ? 2 : 1);
}

std::string setting(const TuneTrial& trial) {
  return trial.value == kDefault ? "bucket_cap_mb unset (25 MiB, first bucket 1 MiB)"
                                 : "bucket_cap_mb=" + trial.value;
}

std::string row(const char* what, const TuneTrial& trial) {
  const PointResult& r = trial.result;
  return fmt::format("  {:<10}{:<50}{:>12}{:>12}{:>12}{:>12}{:>12}{:>9}\n", what, setting(trial),
                     ms(r.step_p50), ms(r.forward), ms(r.backward), ms(r.exposed), ms(r.optimizer),
                     r.buckets);
}

std::string reason(const TuneTrial& from, const TuneTrial& to) {
  const PointResult& a = from.result;
  const PointResult& b = to.result;
  std::string why =
      fmt::format("Exposed communication goes from {} to {}", ms(a.exposed), ms(b.exposed));
  if (b.buckets < a.buckets) {
    why += fmt::format(
        ": {} all-reduces in place of {} pay their latency less often, and communication lasts {} "
        "in "
        "place of {}.",
        b.buckets, a.buckets, ms(b.communication), ms(a.communication));
  } else if (b.buckets > a.buckets) {
    why += fmt::format(
        ": with {} buckets in place of {} the first is under way earlier and the last, which "
        "nothing "
        "hides, is smaller.",
        b.buckets, a.buckets);
  } else {
    why += ": as many buckets, cut in other places.";
  }
  return why;
}

}  // namespace

TuneAnswer tune_bucket_cap(
    const std::string& baseline, Bytes model_bytes,
    const std::function<std::vector<PointResult>(const std::vector<std::string>& values)>& run) {
  TuneAnswer answer;
  const auto try_all = [&](const std::vector<std::string>& values) {
    std::vector<TuneTrial> fresh;
    for (const std::string& value : values) {
      if (!is_tried(answer.trials, value) && !is_tried(fresh, value)) fresh.push_back({value, {}});
    }
    std::vector<std::string> fresh_values;
    for (const TuneTrial& trial : fresh) fresh_values.push_back(trial.value);
    const auto results = run(fresh_values);
    for (std::size_t i = 0; i < fresh.size(); ++i) {
      fresh[i].result = results.at(i);
      answer.trials.push_back(fresh[i]);
    }
    std::stable_sort(
        answer.trials.begin(), answer.trials.end(),
        [](const TuneTrial& a, const TuneTrial& b) { return cap_of(a.value) < cap_of(b.value); });
  };
  try_all(first_values(baseline, model_bytes));
  for (int round = 0; round < 2; ++round) try_all(values_around(answer.trials));

  const TuneTrial* best = best_of(answer.trials);
  if (best == nullptr) {
    throw Error(ErrorCode::kInternal,
                "no run of the scenario completed: " + answer.trials.front().result.error);
  }
  answer.best = *best;
  for (const TuneTrial& trial : answer.trials) {
    if (trial.value == baseline) answer.baseline = trial;
  }
  const PointResult& r = answer.best.result;
  answer.least_seconds = r.data + r.forward + r.backward + r.optimizer;
  return answer;
}

std::string describe(const TuneAnswer& answer) {
  std::string text =
      fmt::format("# {:<9} {:<50}{:>12}{:>12}{:>12}{:>12}{:>12}{:>9}\n", "", "setting", "step",
                  "forward", "backward", "exposed", "optimizer", "buckets");
  for (const TuneTrial& trial : answer.trials) {
    const bool is_best = trial.value == answer.best.value;
    const bool is_baseline = trial.value == answer.baseline.value;
    text += row(is_best ? "best" : is_baseline ? "now" : "", trial);
  }
  const double now = answer.baseline.result.step_p50;
  const double best = answer.best.result.step_p50;
  if (answer.best.value == answer.baseline.value || best >= now * 0.999) {
    text += fmt::format("Keep {}: no other setting is faster by more than a thousandth.\n",
                        setting(answer.baseline));
  } else {
    text += fmt::format("Set {}: the step takes {} in place of {}, {:.1f}% less.\n",
                        setting(answer.best), ms(best), ms(now), (1 - best / now) * 100);
    text += reason(answer.baseline, answer.best) + "\n";
  }
  text += fmt::format(
      "Without any exposed communication it would be {}; that is all that a faster network or "
      "other buckets can still gain.\n",
      ms(answer.least_seconds));
  if (!answer.best.result.bottleneck.empty()) {
    text += fmt::format("Bottleneck: {}.\n", answer.best.result.bottleneck);
  }
  return text;
}

}  // namespace gradsync
