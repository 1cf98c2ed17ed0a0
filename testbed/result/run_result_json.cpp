#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "gradsync/core/version.hpp"
#include "gradsync/testbed/result/run_result.hpp"

namespace gradsync {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kSchemaVersion = 1;

/// null if there is no number, or none that JSON can represent.
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

Json blame_json(const diagnosis::Blame& blame) {
  constexpr std::size_t kListed = 16;
  Json ranks = Json::array();
  for (std::size_t i = 0; i < std::min(blame.ranks.size(), kListed); ++i) {
    const diagnosis::Blame::Rank& rank = blame.ranks[i];
    ranks.push_back({{"rank", rank.rank},
                     {"share", rank.share},
                     {"cost", rank.cost},
                     {"steps", rank.steps},
                     {"lateness_seconds", rank.lateness.count()},
                     {"phase", rank.phase.empty() ? Json() : Json(rank.phase)}});
  }
  Json network = Json::array();
  for (const diagnosis::Blame::Network& cost : blame.network) {
    network.push_back({{"what", cost.what},
                       {"steps", cost.steps},
                       {"seconds", cost.lost.count()},
                       {"longest_step", cost.longest},
                       {"longest_seconds", cost.longest_lost.count()}});
  }
  Json start;
  if (blame.start) start = {{"rank", blame.start->rank}, {"seconds", blame.start->late.count()}};
  return {{"steps", blame.steps},           {"cost", blame.cost},
          {"seconds", blame.saved.count()}, {"ranks", std::move(ranks)},
          {"start", std::move(start)},      {"network", std::move(network)}};
}

Json network_json(const NetworkLoad& network) {
  if (network.links.empty()) return nullptr;
  Json links = Json::array();
  for (const LinkLoad& link : network.links) {
    links.push_back({{"name", link.name},
                     {"bytes_per_second", link.bandwidth.value},
                     {"bytes", link.bytes},
                     {"bytes_of_others", link.bytes_of_others},
                     {"use", link.use},
                     {"use_by_others", link.use_by_others},
                     {"condition", link.condition.empty() ? Json() : Json(link.condition)}});
  }
  return {{"communication_seconds", network.communication.count()},
          {"as_busy", network.as_busy},
          {"busiest", std::move(links)}};
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
      {"steady_step_seconds",
       {{"steps", result.steady_step_seconds.steps},
        {"p50", number(result.steady_step_seconds.p50)},
        {"p95", number(result.steady_step_seconds.p95)}}},
      {"blame", blame_json(result.blame)},
      {"network", network_json(result.network)},
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
