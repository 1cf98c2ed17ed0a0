#include "gradsync/predict/tune.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "gradsync/core/error.hpp"

namespace gradsync {
namespace {

constexpr double kMiB = 1024.0 * 1024.0;
const std::string kDefault = "null";

/// The part of a setting that is searched.
using Value = std::string BucketSetting::*;

double mib_of(const std::string& value) {
  return value == kDefault ? 0 : std::stod(value);
}

/// Compares numbers by value, whatever their spelling: 25 and 25.0 are the same cap.
bool is_tried(const std::vector<TuneTrial>& trials, Value part, const std::string& value) {
  return std::any_of(trials.begin(), trials.end(), [&](const TuneTrial& trial) {
    const std::string& tried = trial.setting.*part;
    return tried == value ||
           (value != kDefault && tried != kDefault && mib_of(tried) == mib_of(value));
  });
}

/// 1, 2, 5, 10, 25, 50, 100, ... times `smallest`, up to the first that is `enough`.
std::vector<std::string> series(double smallest, double enough) {
  std::vector<std::string> values;
  for (double power = smallest;; power *= 10) {
    for (const double factor : {1.0, 2.0, 5.0}) {
      // 25 instead of 20, because it is PyTorch's default.
      const double value = factor * power == 20 ? 25 : factor * power;
      values.push_back(fmt::format("{:g}", value));
      if (value >= enough) return values;
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

/// The trial with the shortest step; the first of equals.
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

std::vector<std::string> values_around(const std::vector<TuneTrial>& trials, Value part) {
  std::vector<std::string> values;
  const TuneTrial* best = best_of(trials);
  if (best == nullptr || best->setting.*part == kDefault) return values;
  const auto at = static_cast<std::size_t>(best - trials.data());
  const auto between = [&](const TuneTrial& other) {
    if (other.setting.*part == kDefault) return;
    values.push_back(fmt::format(
        "{:g}", two_digits(std::sqrt(mib_of(best->setting.*part) * mib_of(other.setting.*part)))));
  };
  if (at > 0) between(trials[at - 1]);
  if (at + 1 < trials.size()) between(trials[at + 1]);
  return values;
}

/// Tries `values` for one part of a setting with the other part from `fixed`, then refines twice
/// around the best. `trials` stay sorted by that part.
void search(std::vector<TuneTrial>& trials, const BucketSetting& fixed, Value part,
            const std::vector<std::string>& values, const RunSettings& run) {
  const auto try_all = [&](const std::vector<std::string>& candidates) {
    std::vector<BucketSetting> fresh;
    for (const std::string& value : candidates) {
      const bool repeated = std::any_of(fresh.begin(), fresh.end(), [&](const auto& other) {
        return other.*part == value || (value != kDefault && other.*part != kDefault &&
                                        mib_of(other.*part) == mib_of(value));
      });
      if (repeated || is_tried(trials, part, value)) continue;
      fresh.push_back(fixed);
      fresh.back().*part = value;
    }
    if (fresh.empty()) return;
    const std::vector<PointResult> results = run(fresh);
    for (std::size_t i = 0; i < fresh.size(); ++i) trials.push_back({fresh[i], results.at(i)});
    std::stable_sort(trials.begin(), trials.end(), [part](const TuneTrial& a, const TuneTrial& b) {
      return mib_of(a.setting.*part) < mib_of(b.setting.*part);
    });
  };
  try_all(values);
  for (int round = 0; round < 2; ++round) try_all(values_around(trials, part));
}

std::string ms(double seconds) {
  const double value = seconds * 1e3;
  return fmt::format("{:.{}f} ms", value, value < 1 ? 3 : value < 100 ? 2 : 1);
}

std::string describe(const BucketSetting& setting) {
  const bool is_default = setting.cap == kDefault;
  std::string text = is_default ? "bucket_cap_mb unset (25 MiB" : "bucket_cap_mb=" + setting.cap;
  if (setting.first != kDefault) {
    return text + (is_default ? ")" : "") + ", first_bucket_cap_mb=" + setting.first;
  }
  return is_default ? text + ", first bucket 1 MiB)" : text;
}

std::string row(const char* what, const TuneTrial& trial) {
  const PointResult& r = trial.result;
  return fmt::format("  {:<10}{:<50}{:>12}{:>12}{:>12}{:>12}{:>12}{:>9}\n", what,
                     describe(trial.setting), ms(r.step_p50), ms(r.forward), ms(r.backward),
                     ms(r.exposed), ms(r.optimizer), r.buckets);
}

std::string reason(const TuneTrial& from, const TuneTrial& to) {
  const PointResult& a = from.result;
  const PointResult& b = to.result;
  std::string why =
      fmt::format("Exposed communication falls from {} to {}", ms(a.exposed), ms(b.exposed));
  if (b.buckets < a.buckets) {
    why += fmt::format(
        ": {} all-reduces instead of {} wait less for latency, and communication takes {} instead "
        "of {}.",
        b.buckets, a.buckets, ms(b.communication), ms(a.communication));
  } else if (b.buckets > a.buckets) {
    why += fmt::format(
        ": with {} buckets instead of {} the first starts earlier, and the last, which nothing "
        "hides, is smaller.",
        b.buckets, a.buckets);
  } else {
    why += ": the same number of buckets, cut at other places.";
  }
  return why;
}

/// The gain of the first bucket alone, compared with that of the best cap.
std::string first_bucket_line(const TuneAnswer& answer) {
  if (answer.first_trials.empty()) return {};
  const double without = answer.best_cap.result.step_p50;
  const double with = answer.best.result.step_p50;
  if (answer.best.setting.first == answer.best_cap.setting.first) {
    return fmt::format("First bucket: none of {} other sizes gains more than 0.1%.\n",
                       answer.first_trials.size());
  }
  return fmt::format(
      "Of this gain, first_bucket_cap_mb={} contributes {:.1f}%: {} instead of {}.\n",
      answer.best.setting.first, (1 - with / without) * 100, ms(with), ms(without));
}

}  // namespace

TuneAnswer tune_buckets(const BucketSetting& baseline, Bytes model_bytes, const RunSettings& run) {
  TuneAnswer answer;
  const Value cap = &BucketSetting::cap;
  const Value first = &BucketSetting::first;
  std::vector<std::string> caps = series(1, static_cast<double>(model_bytes) / kMiB);
  caps.insert(caps.begin(), {baseline.cap, kDefault});
  search(answer.trials, baseline, cap, caps, run);
  const TuneTrial* best = best_of(answer.trials);
  if (best == nullptr) {
    throw Error(ErrorCode::kInternal,
                "no run of the scenario completed: " + answer.trials.front().result.error);
  }
  answer.best = answer.best_cap = *best;
  for (const TuneTrial& trial : answer.trials) {
    if (trial.setting == baseline) answer.baseline = trial;
  }

  constexpr double kDefaultCap = 25;
  const std::string& best_cap = answer.best_cap.setting.cap;
  const double limit = best_cap == kDefault ? kDefaultCap : mib_of(best_cap);
  // A first bucket as large as the others would not be a first bucket.
  std::vector<std::string> firsts = series(0.1, limit);
  std::erase_if(firsts, [&](const std::string& value) { return mib_of(value) >= limit; });
  std::vector<TuneTrial> trials{answer.best_cap};
  search(trials, answer.best_cap.setting, first, firsts, run);
  const TuneTrial* best_first = best_of(trials);
  // Keep the current first bucket unless another one is better by more than 0.1%.
  if (best_first->result.step_p50 < answer.best_cap.result.step_p50 * 0.999) {
    answer.best = *best_first;
  }
  for (const TuneTrial& trial : trials) {
    if (!(trial.setting == answer.best_cap.setting)) answer.first_trials.push_back(trial);
  }
  const PointResult& r = answer.best.result;
  answer.least_seconds = r.data + r.forward + r.backward + r.optimizer;
  return answer;
}

double TuneAnswer::gain() const {
  return 1 - best.result.step_p50 / baseline.result.step_p50;
}

std::string describe(const TuneAnswer& answer) {
  std::string text =
      fmt::format("# {:<9} {:<50}{:>12}{:>12}{:>12}{:>12}{:>12}{:>9}\n", "", "setting", "step",
                  "forward", "backward", "exposed", "optimizer", "buckets");
  for (const auto* trials : {&answer.trials, &answer.first_trials}) {
    for (const TuneTrial& trial : *trials) {
      const bool is_best = trial.setting == answer.best.setting;
      const bool is_baseline = trial.setting == answer.baseline.setting;
      text += row(is_best ? "best" : is_baseline ? "now" : "", trial);
    }
  }
  const double now = answer.baseline.result.step_p50;
  const double best = answer.best.result.step_p50;
  const bool is_faster = !(answer.best.setting == answer.baseline.setting) && best < now * 0.999;
  if (is_faster && !answer.is_worth_it()) {
    text += fmt::format(
        "Keep {}: with {} the step would take {} instead of {}, {:.1f}% less: no difference "
        "beyond "
        "the uncertainty of {:g}%.\n",
        describe(answer.baseline.setting), describe(answer.best.setting), ms(best), ms(now),
        answer.gain() * 100, answer.uncertainty * 100);
  } else if (!is_faster) {
    text += fmt::format("Keep {}: no other setting is faster by more than 0.1%.\n",
                        describe(answer.baseline.setting));
  } else {
    text += fmt::format("Set {}: the step takes {} instead of {}, {:.1f}% less.\n",
                        describe(answer.best.setting), ms(best), ms(now), answer.gain() * 100);
    text += reason(answer.baseline, answer.best) + "\n";
    text += first_bucket_line(answer);
  }
  text += fmt::format(
      "Without any exposed communication the step would take {}; a faster network or other buckets "
      "cannot gain more.\n",
      ms(answer.least_seconds));
  if (!answer.best.result.bottleneck.empty()) {
    text += fmt::format("Bottleneck: {}.\n", answer.best.result.bottleneck);
  }
  return text;
}

}  // namespace gradsync
