#include "gradsync/predict/point_result.hpp"

#include <algorithm>
#include <map>

#include <nlohmann/json.hpp>

#include "gradsync/predict/bottleneck.hpp"
#include "gradsync/testbed/record/statistics.hpp"

namespace gradsync {
namespace {

/// Calls `visit` for each steady step of each rank.
template <typename Visit>
void for_each_steady_step(const RunOutcome& outcome, const RunResult& result, Visit visit) {
  const std::int64_t first = first_steady_step(result.steps_completed);
  for (const RankReport& report : outcome.reports) {
    for (const StepRecord& step : report.steps) {
      if (step.step >= first && step.step < result.steps_completed) visit(step);
    }
  }
}

void summarize_steps(PointResult& point, const RunOutcome& outcome, const RunResult& result) {
  std::map<std::int64_t, double> slowest;
  double count = 0;
  const StepRecord* last = nullptr;  // of the same rank
  for_each_steady_step(outcome, result, [&](const StepRecord& step) {
    if (last != nullptr && step.step > last->step) {
      point.period += (step.begin - last->optimizer_end).count();
    }
    last = &step;
    point.period += (step.optimizer_end - step.begin).count();
    double& longest = slowest[step.step];
    longest = std::max(longest, (step.optimizer_end - step.begin).count());
    point.data += (step.data_end - step.begin).count();
    point.forward += (step.forward_end - step.data_end).count();
    point.backward += (step.backward_compute_end - step.forward_end).count();
    point.exposed += (step.backward_end - step.backward_compute_end).count();
    point.optimizer += (step.optimizer_end - step.backward_end).count();
    point.communication += (step.comm_end - step.comm_begin).count();
    ++count;
  });
  if (count == 0) return;
  for (double* part : {&point.data, &point.forward, &point.backward, &point.exposed,
                       &point.optimizer, &point.communication, &point.period}) {
    *part /= count;
  }
  std::vector<double> steps;
  for (const auto& [step, seconds] : slowest) steps.push_back(seconds);
  std::sort(steps.begin(), steps.end());
  point.steps = static_cast<std::int64_t>(steps.size());
  point.step_p50 = percentile(steps, 50);
  point.step_p95 = percentile(steps, 95);
}

}  // namespace

PointResult summarize(const Scenario& scenario, const RunOutcome& outcome,
                      const RunResult& result) {
  PointResult point;
  point.outcome = to_string(result.outcome);
  point.world_size = result.world_size;
  summarize_steps(point, outcome, result);
  point.buckets = static_cast<std::int64_t>(result.ddp.buckets.size());
  for (const BucketSummary& bucket : result.ddp.buckets) point.bucket_bytes += bucket.bytes;
  point.bottleneck = describe_busiest(result.network);
  // The analytic model has no link loads.
  if (point.bottleneck.empty() && scenario.backend == "sim" && point.buckets > 0) {
    point.bottleneck = "estimate: " + describe(find_bottleneck(scenario.cluster, scenario.ranks,
                                                               point.bucket_bytes / point.buckets));
  }
  for (const RankReport& report : outcome.reports) {
    if (report.error.empty()) continue;
    point.error = report.error;
    if (report.error_code != ErrorCode::kPeerFailed) break;  // else caused by another rank
  }
  return point;
}

nlohmann::ordered_json to_json(const PointResult& point) {
  return {{"outcome", point.outcome},
          {"world_size", point.world_size},
          {"steps", point.steps},
          {"step_seconds", {{"p50", point.step_p50}, {"p95", point.step_p95}}},
          {"period_seconds", point.period},
          {"split",
           {{"data", point.data},
            {"forward", point.forward},
            {"backward", point.backward},
            {"exposed_comm", point.exposed},
            {"optimizer", point.optimizer}}},
          {"communication", point.communication},
          {"buckets", point.buckets},
          {"bucket_bytes", point.bucket_bytes},
          {"bottleneck", point.bottleneck},
          {"error", point.error}};
}

PointResult point_result_from_json(const nlohmann::ordered_json& json) {
  PointResult point;
  point.outcome = json.at("outcome");
  point.world_size = json.at("world_size");
  point.steps = json.at("steps");
  point.step_p50 = json.at("step_seconds").at("p50");
  point.step_p95 = json.at("step_seconds").at("p95");
  point.period = json.at("period_seconds");
  const auto& split = json.at("split");
  point.data = split.at("data");
  point.forward = split.at("forward");
  point.backward = split.at("backward");
  point.exposed = split.at("exposed_comm");
  point.optimizer = split.at("optimizer");
  point.communication = json.at("communication");
  point.buckets = json.at("buckets");
  point.bucket_bytes = json.at("bucket_bytes");
  point.bottleneck = json.at("bottleneck");
  point.error = json.at("error");
  return point;
}

}  // namespace gradsync
