#include "engine/train/rank_report_json.hpp"

#include "engine/train/json_fields.hpp"
#include "engine/train/record_json.hpp"

namespace gradsync {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kReportVersion = 1;

Json to_json(const StepRecord& step) {
  return {
      {"epoch", step.epoch},
      {"step", step.step},
      {"loss", json_number(step.loss)},
      {"grad_norm", json_number(step.grad_norm)},
      {"learning_rate", json_number(step.learning_rate)},
      {"parameter_hash", step.parameter_hash},
      {"samples", step.samples},
      {"sample_hash", step.sample_hash},
      {"begin", json_number(step.begin.count())},
      {"data_end", json_number(step.data_end.count())},
      {"forward_end", json_number(step.forward_end.count())},
      {"backward_compute_end", json_number(step.backward_compute_end.count())},
      {"backward_end", json_number(step.backward_end.count())},
      {"clip_end", json_number(step.clip_end.count())},
      {"optimizer_end", json_number(step.optimizer_end.count())},
      {"end", json_number(step.end.count())},
      {"comm_begin", json_number(step.comm_begin.count())},
      {"comm_end", json_number(step.comm_end.count())},
  };
}

StepRecord step_from_json(const Json& json, const std::string& path) {
  const JsonFields fields(json, path);
  StepRecord step;
  fields.get("epoch", step.epoch);
  fields.get("step", step.step);
  fields.get("loss", step.loss);
  fields.get("grad_norm", step.grad_norm);
  fields.get("learning_rate", step.learning_rate);
  fields.get("parameter_hash", step.parameter_hash);
  fields.get("samples", step.samples);
  fields.get("sample_hash", step.sample_hash);
  fields.get("begin", step.begin);
  fields.get("data_end", step.data_end);
  fields.get("forward_end", step.forward_end);
  fields.get("backward_compute_end", step.backward_compute_end);
  fields.get("backward_end", step.backward_end);
  fields.get("clip_end", step.clip_end);
  fields.get("optimizer_end", step.optimizer_end);
  fields.get("end", step.end);
  fields.get("comm_begin", step.comm_begin);
  fields.get("comm_end", step.comm_end);
  return step;
}

BucketSummary bucket_from_json(const Json& json, const ParameterLists& lists,
                               const std::string& path) {
  const JsonFields fields(json, path);
  BucketSummary bucket;
  fields.get("index", bucket.index);
  fields.get("bytes", bucket.bytes);
  fields.get("elements", bucket.elements);
  if (const auto list = lists.at(fields.at("parameters"), fields.path_of("parameters"))) {
    bucket.parameters = *list;
  }
  return bucket;
}

template <typename T, typename Read>
std::vector<T> list_from_json(const JsonFields& fields, const char* key, const Read& read) {
  std::vector<T> list;
  for (const Json& element : fields.array(key)) {
    list.push_back(read(element, fmt::format("{}[{}]", fields.path_of(key), list.size())));
  }
  return list;
}

}  // namespace

Json to_json(const RankReport& report) {
  ParameterLists lists;
  Json buckets = Json::array();
  for (const BucketSummary& bucket : report.buckets) {
    const auto names = std::make_shared<const std::vector<std::string>>(bucket.parameters);
    buckets.push_back({{"index", bucket.index},
                       {"bytes", bucket.bytes},
                       {"elements", bucket.elements},
                       {"parameters", lists.position_of(names)}});
  }
  Json steps = Json::array();
  for (const StepRecord& step : report.steps) steps.push_back(to_json(step));
  const auto records = [&](const std::vector<CollectiveRecord>& from) {
    Json to = Json::array();
    for (const CollectiveRecord& record : from) to.push_back(to_json(record, lists));
    return to;
  };
  Json json{
      {"report_version", kReportVersion},
      {"rank", report.rank},
      {"world_size", report.world_size},
      {"state", to_string(report.state)},
      {"error_code", report.error_code ? Json(to_string(*report.error_code)) : Json()},
      {"error", report.error},
      {"failed_collective",
       report.failed_collective ? to_json(*report.failed_collective, lists) : Json()},
      {"exit_code", report.exit_code ? Json(*report.exit_code) : Json()},
      {"exit_signal", report.exit_signal ? Json(*report.exit_signal) : Json()},
      {"phase", to_string(report.phase)},
      {"phase_since", json_number(report.phase_since.count())},
      {"ended", json_number(report.ended.count())},
      {"steps_completed", report.steps_completed},
      {"steps_planned", report.steps_planned},
      {"samples_planned", report.samples_planned},
      {"dataset_samples", report.dataset_samples},
      {"parameter_tensors", report.parameter_tensors},
      {"parameter_count", report.parameter_count},
      {"parameter_bytes", report.parameter_bytes},
      {"rebuilt_buckets", report.rebuilt_buckets},
      {"buckets", std::move(buckets)},
      {"comm_hook", report.comm_hook},
      {"final_parameter_hash", report.final_parameter_hash},
      {"peak_rss_bytes", report.peak_rss_bytes},
      {"steps", std::move(steps)},
      {"collectives", records(report.collectives)},
      {"flight", records(report.flight)},
  };
  json["parameter_lists"] = lists.to_json();
  return json;
}

RankReport rank_report_from_json(const Json& json) {
  const JsonFields fields(json, "report");
  int report_version = 0;
  fields.get("report_version", report_version);
  if (report_version != kReportVersion) {
    JsonFields::fail(fields.path_of("report_version"), fmt::format("{}", kReportVersion),
                     fields.at("report_version"));
  }
  const ParameterLists lists(fields.array("parameter_lists"), fields.path_of("parameter_lists"));
  const auto record = [&](const Json& element, const std::string& path) {
    return record_from_json(element, lists, path);
  };
  RankReport report;
  fields.get("rank", report.rank);
  fields.get("world_size", report.world_size);
  fields.get_word("state", report.state, RankState::kRunning, RankState::kFailed);
  if (!fields.at("error_code").is_null()) {
    fields.get_word("error_code", report.error_code.emplace(), ErrorCode::kInvalidScenario,
                    ErrorCode::kInternal);
  }
  fields.get("error", report.error);
  if (!fields.at("failed_collective").is_null()) {
    report.failed_collective =
        record(fields.at("failed_collective"), fields.path_of("failed_collective"));
  }
  fields.get("exit_code", report.exit_code);
  fields.get("exit_signal", report.exit_signal);
  fields.get_word("phase", report.phase, Phase::kInit, Phase::kShutdown);
  fields.get("phase_since", report.phase_since);
  fields.get("ended", report.ended);
  fields.get("steps_completed", report.steps_completed);
  fields.get("steps_planned", report.steps_planned);
  fields.get("samples_planned", report.samples_planned);
  fields.get("dataset_samples", report.dataset_samples);
  fields.get("parameter_tensors", report.parameter_tensors);
  fields.get("parameter_count", report.parameter_count);
  fields.get("parameter_bytes", report.parameter_bytes);
  fields.get("rebuilt_buckets", report.rebuilt_buckets);
  report.buckets = list_from_json<BucketSummary>(fields, "buckets",
                                                 [&](const Json& element, const std::string& path) {
                                                   return bucket_from_json(element, lists, path);
                                                 });
  fields.get("comm_hook", report.comm_hook);
  fields.get("final_parameter_hash", report.final_parameter_hash);
  fields.get("peak_rss_bytes", report.peak_rss_bytes);
  report.steps = list_from_json<StepRecord>(fields, "steps", step_from_json);
  report.collectives = list_from_json<CollectiveRecord>(fields, "collectives", record);
  report.flight = list_from_json<CollectiveRecord>(fields, "flight", record);
  return report;
}

RankReport rank_report_from_text(const std::string& text, const std::string& source) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) {
    throw Error(ErrorCode::kInternal,
                fmt::format("{}: expected the report of a rank, found {} bytes that are no JSON",
                            source, text.size()));
  }
  try {
    return rank_report_from_json(json);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}", source, error.what()));
  }
}

}  // namespace gradsync
