#include <cmath>

#include <nlohmann/json.hpp>

#include "engine/core/version.hpp"
#include "engine/train/run_result.hpp"

namespace gradsync {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kSchemaVersion = 1;

/// Null where there is no number, or none that JSON can write.
Json number(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? Json(*value) : Json();
}

Json ddp_json(const RunResult::Ddp& ddp) {
  Json buckets = Json::array();
  for (const BucketSummary& bucket : ddp.buckets) {
    buckets.push_back({{"index", bucket.index},
                       {"bytes", bucket.bytes},
                       {"elements", bucket.elements},
                       {"parameters", bucket.parameters}});
  }
  Json logging = ddp.logging.strs_map;
  logging.update(Json(ddp.logging.ints_map));
  return {{"buckets", std::move(buckets)},
          {"rebuilt", ddp.rebuilt},
          {"comm_hook", ddp.comm_hook},
          {"logging_data", std::move(logging)}};
}

Json expectations_json(const std::vector<ExpectationResult>& expectations) {
  Json list = Json::array();
  for (const ExpectationResult& expectation : expectations) {
    list.push_back({{"what", expectation.what},
                    {"expected", expectation.expected},
                    {"found", expectation.found},
                    {"ok", expectation.ok}});
  }
  return list;
}

}  // namespace

Json to_json(const RunResult& result) {
  return {
      {"schema_version", kSchemaVersion},
      {"scenario", result.scenario},
      {"backend", result.backend},
      {"world_size", result.world_size},
      {"outcome", to_string(result.outcome)},
      {"steps_completed", result.steps_completed},
      {"parameters",
       {{"count", result.parameters.count},
        {"tensors", result.parameters.tensors},
        {"bytes", result.parameters.bytes}}},
      {"parameter_hash", result.parameter_hash ? Json(*result.parameter_hash) : Json()},
      {"loss",
       {{"first", number(result.loss.first)},
        {"last", number(result.loss.last)},
        {"mean", number(result.loss.mean)}}},
      {"step_seconds",
       {{"min", number(result.step_seconds.min)},
        {"p50", number(result.step_seconds.p50)},
        {"p95", number(result.step_seconds.p95)},
        {"max", number(result.step_seconds.max)},
        {"mean", number(result.step_seconds.mean)}}},
      {"time_breakdown",
       {{"forward", number(result.time_breakdown.forward)},
        {"backward_compute", number(result.time_breakdown.backward_compute)},
        {"backward_comm", number(result.time_breakdown.backward_comm)},
        {"exposed_comm", number(result.time_breakdown.exposed_comm)},
        {"optimizer", number(result.time_breakdown.optimizer)}}},
      {"simulated_seconds", number(result.simulated_seconds)},
      {"wall_seconds", result.wall_seconds},
      {"peak_rss_bytes", result.peak_rss_bytes},
      {"ddp", ddp_json(result.ddp)},
      {"diagnosis", result.diagnosis ? to_json(*result.diagnosis) : Json()},
      {"tool_version", version()},
      {"exit_status", result.exit_status()},
      {"notes", result.notes},
      {"expectations", expectations_json(result.expectations)},
  };
}

}  // namespace gradsync
