// The search for a bucket_cap_mb.
#include <cmath>
#include <set>

#include "engine/core/error.hpp"
#include "predict/tune.hpp"
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
  std::set<std::string> tried = {};
  int rounds = 0;
  std::vector<PointResult> operator()(const std::vector<std::string>& values) {
    ++rounds;
    std::vector<PointResult> results;
    for (const std::string& value : values) {
      CHECK(tried.insert(value).second);  // nothing is run twice
      results.push_back(modelled(value == "null" ? 25 : std::stod(value), latency));
    }
    return results;
  }
};

}  // namespace

TEST_CASE("tune finds a cap near the best one, and says what it gains") {
  Network network{1e-4};
  const TuneAnswer answer = tune_bucket_cap("25", kModel, std::ref(network));
  // The minimum of 400 l / c + c 1e-5 is at sqrt(400 l / 1e-5) = 63 MiB.
  CHECK(std::stod(answer.best.value) >= 45);
  CHECK(std::stod(answer.best.value) <= 90);
  CHECK(answer.baseline.value == "25");
  CHECK(answer.best.result.step_p50 < answer.baseline.result.step_p50);
  CHECK(answer.least_seconds == Approx(0.031));
  CHECK(network.tried.count("null") == 1);
  CHECK(network.tried.count("500") == 1);  // the whole model in one bucket
  CHECK(network.tried.count("1000") == 0);
  const std::string text = describe(answer);
  CHECK_THAT(text, contains("Set bucket_cap_mb=" + answer.best.value));
  CHECK_THAT(text, contains("pay their latency less often"));
}

TEST_CASE("tune keeps a setting that nothing beats") {
  Network network{0};
  const TuneAnswer answer = tune_bucket_cap("1", kModel, std::ref(network));
  CHECK(answer.best.value == "1");
  CHECK_THAT(describe(answer), contains("Keep bucket_cap_mb=1"));
}

TEST_CASE("tune says so when no run completes") {
  const auto failing = [](const std::vector<std::string>& values) {
    PointResult result;
    result.outcome = "hang";
    result.error = "rank 1 waits";
    return std::vector<PointResult>(values.size(), result);
  };
  CHECK_THROWS_WITH(tune_bucket_cap("25", kModel, failing), contains("rank 1 waits"));
}

}  // namespace gradsync
