#include "tools/command/rank_bodies.hpp"

#include "gradsync/core/error.hpp"
#include "tools/command/bench_conditions.hpp"

namespace gradsync {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kAllreduceBody = "allreduce";
constexpr const char* kCollectiveBody = "collective";

/// In seconds and exact: a row from another process equals the measured one.
Json event_of(const BenchRow& row) {
  Json event = {{"bytes", row.bytes},
                {"count", row.count},
                {"type", row.type},
                {"seconds", row.time.count()}};
  if (row.median) event["median_seconds"] = row.median->count();
  if (row.wrong) event["wrong"] = *row.wrong;
  return event;
}

}  // namespace

RankBody allreduce_body(const AllreduceBench& bench) {
  RankBody body;
  body.name = kAllreduceBody;
  body.arguments = to_json(bench);
  body.load = [bench](const Scenario& scenario, const RunObserver& observer) -> RankMain {
    return [bench, &scenario, &observer](const RankRuntime& runtime, RankReport& report) {
      run_allreduce_bench(
          bench, runtime, report,
          [&](const BenchRow& row) {
            if (observer) observer(event_of(row));
          },
          [&](std::int64_t step) {
            const Seconds delay = bench_delay(scenario, report.rank, step);
            if (delay > Seconds{0}) runtime.clock->sleep(delay);
          });
    };
  };
  return body;
}

RankBody collective_body(const CollectiveBench& bench) {
  RankBody body;
  body.name = kCollectiveBody;
  body.arguments = to_json(bench);
  body.load = [bench](const Scenario& scenario, const RunObserver& observer) -> RankMain {
    return [bench, &scenario, &observer](const RankRuntime& runtime, RankReport& report) {
      run_collective_bench(
          bench, runtime, report,
          [&](const CollectiveRow& row) {
            if (observer) observer(to_json(row));
          },
          [&](std::int64_t step) {
            const Seconds delay = bench_delay(scenario, report.rank, step);
            if (delay > Seconds{0}) runtime.clock->sleep(delay);
          });
    };
  };
  return body;
}

BenchRow row_of_event(const Json& event) {
  BenchRow row;
  row.bytes = event.at("bytes");
  row.count = event.at("count");
  row.type = event.at("type");
  row.time = Seconds(event.at("seconds").get<double>());
  if (event.contains("median_seconds")) {
    row.median = Seconds(event.at("median_seconds").get<double>());
  }
  if (event.contains("wrong")) row.wrong = event.at("wrong").get<std::int64_t>();
  return row;
}

RankBody make_rank_body(const std::string& name, const Json& arguments, const Scenario& scenario) {
  if (name == kTrainingBody) return training_body(scenario);
  if (name == kAllreduceBody) return allreduce_body(allreduce_bench_from_json(arguments));
  if (name == kCollectiveBody) return collective_body(collective_bench_from_json(arguments));
  throw Error(ErrorCode::kUsage, "there is no body \"" + name + "\" for a rank");
}

}  // namespace gradsync
