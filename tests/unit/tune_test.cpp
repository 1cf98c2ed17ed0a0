// The search for a bucket_cap_mb.
#include <cmath>
#include <set>

#include "gradsync/core/error.hpp"
#include "gradsync/predict/tune.hpp"
#include "tests/support/catch.hpp"

namespace gradsync {
namespace {

using test::Approx;
using test::contains;

constexpr Bytes kModel = Bytes{400} << 20;

/// A step whose exposed part is a latency for each bucket and the transfer of the last bucket.
PointResult modelled(double cap_mib, double latency) {
  PointResult result;
  result.outcome = "completed";
  result.forward = 0.010;
  result.backward = 0.020;
  result.optimizer = 0.001;
  result.buckets = static_cast<std::int64_t>(std::ceil(400 / cap_mib));
  result.exposed = latency * static_cast<double>(result.buckets) + cap_mib * 1e-5;
  result.communication = result.exposed + 0.02;
  result.step_p50 = result.forward + result.backward + result.exposed + result.optimizer;
  return result;
}

struct Network {
  double latency;
  /// MiB; a step is the longer the farther a first bucket that is given is from it; 0: no matter.
  double best_first = 0;
  std::set<std::string> tried = {};
  std::vector<PointResult> operator()(const std::vector<BucketSetting>& settings) {
    std::vector<PointResult> results;
    for (const BucketSetting& setting : settings) {
      CHECK(tried.insert(setting.cap + " " + setting.first).second);  // nothing is run twice
      const double cap = setting.cap == "null" ? 25 : std::stod(setting.cap);
      PointResult result = modelled(cap, latency);
      if (best_first > 0) {
        const bool given = setting.first != "null";
        result.step_p50 +=
            given ? 1e-3 * std::abs(std::log(std::stod(setting.first) / best_first)) : 2e-3;
      }
      results.push_back(result);
    }
    return results;
  }
};

}  // namespace

TEST_CASE("tune finds a cap near the best one, and says what it gains") {
  Network network{1e-4};
  TuneAnswer answer = tune_buckets({"25", "null"}, kModel, std::ref(network));
  // The minimum of 400 l / c + c 1e-5 is at sqrt(400 l / 1e-5) = 63 MiB.
  CHECK(std::stod(answer.best.setting.cap) >= 45);
  CHECK(std::stod(answer.best.setting.cap) <= 90);
  CHECK(answer.baseline.setting.cap == "25");
  CHECK(answer.best.result.step_p50 < answer.baseline.result.step_p50);
  CHECK(answer.least_seconds == Approx(0.031));
  CHECK(network.tried.count("null null") == 1);
  CHECK(network.tried.count("500 null") == 1);  // the whole model in one bucket
  CHECK(network.tried.count("1000 null") == 0);
  // 1.8% is less than a simulated step is certain to.
  CHECK(answer.gain() == Approx(0.018).epsilon(0.1));
  CHECK_FALSE(answer.is_worth_it());
  CHECK_THAT(describe(answer), contains("Keep bucket_cap_mb=25") &&
                                   contains("no difference beyond the uncertainty of 3%"));
  answer.uncertainty = 0.01;
  const std::string text = describe(answer);
  CHECK_THAT(text, contains("Set bucket_cap_mb=" + answer.best.setting.cap));
  CHECK_THAT(text, contains("wait less for latency"));
}

TEST_CASE("tune keeps a setting that nothing beats") {
  Network network{0};
  const TuneAnswer answer = tune_buckets({"1", "null"}, kModel, std::ref(network));
  CHECK(answer.best.setting.cap == "1");
  CHECK_THAT(describe(answer), contains("Keep bucket_cap_mb=1"));
}

TEST_CASE("tune looks for the first bucket with the best cap, and says what that alone gains") {
  Network network{1e-4, 3};
  TuneAnswer answer = tune_buckets({"25", "null"}, kModel, std::ref(network));
  answer.uncertainty = 0.001;
  CHECK(answer.best.setting.cap == answer.best_cap.setting.cap);
  CHECK(answer.best_cap.setting.first == "null");
  CHECK(std::stod(answer.best.setting.first) >= 2);
  CHECK(std::stod(answer.best.setting.first) <= 5);
  CHECK(answer.best.result.step_p50 < answer.best_cap.result.step_p50);
  for (const TuneTrial& trial : answer.first_trials) {
    CHECK(trial.setting.cap == answer.best.setting.cap);
    CHECK(std::stod(trial.setting.first) < std::stod(trial.setting.cap));
  }
  CHECK_THAT(describe(answer),
             contains("Of this gain, first_bucket_cap_mb=" + answer.best.setting.first));
}

TEST_CASE("tune leaves the first bucket as it is where no other gains") {
  Network network{1e-4};
  TuneAnswer answer = tune_buckets({"25", "null"}, kModel, std::ref(network));
  answer.uncertainty = 0.001;
  CHECK(answer.best.setting.first == "null");
  CHECK_FALSE(answer.first_trials.empty());
  CHECK_THAT(describe(answer), contains("none of"));
}

TEST_CASE("tune says so when no run completes") {
  const auto failing = [](const std::vector<BucketSetting>& settings) {
    PointResult result;
    result.outcome = "hang";
    result.error = "rank 1 waits";
    return std::vector<PointResult>(settings.size(), result);
  };
  CHECK_THROWS_WITH(tune_buckets({"25", "null"}, kModel, failing), contains("rank 1 waits"));
}

}  // namespace gradsync
