#include "gradsync/testbed/record/rank_report_json.hpp"

#include <algorithm>

#include "gradsync/core/json_text.hpp"
#include "gradsync/testbed/record/json_fields.hpp"
#include "gradsync/testbed/record/record_json.hpp"
#include "gradsync/testbed/record/step_json.hpp"

namespace gradsync {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kReportVersion = 3;

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

Json to_json(const PhaseChange& change) {
  return {{"phase", to_string(change.phase)},
          {"step", change.step},
          {"since", json_number(change.since.count())}};
}

PhaseChange phase_from_json(const Json& json, const std::string& path) {
  const JsonFields fields(json, path);
  PhaseChange change;
  fields.get_word("phase", change.phase, Phase::kInit, Phase::kShutdown);
  fields.get("step", change.step);
  fields.get("since", change.since);
  return change;
}

Json to_json(const RankEvent& event) {
  return {{"kind", to_string(event.kind)},
          {"phase", to_string(event.phase)},
          {"step", event.step},
          {"what", event.what}};
}

RankEvent event_from_json(const Json& json, const std::string& path) {
  const JsonFields fields(json, path);
  RankEvent event;
  fields.get_word("kind", event.kind, RankEventKind::kSkipped, RankEventKind::kRaised);
  fields.get_word("phase", event.phase, Phase::kInit, Phase::kShutdown);
  fields.get("step", event.step);
  fields.get("what", event.what);
  return event;
}

Json to_json(const WorldCondition& condition) {
  return {{"what", condition.what},
          {"begin", json_number(condition.begin.count())},
          {"end", condition.end ? json_number(condition.end->count()) : Json()},
          {"delivers", condition.delivers}};
}

WorldCondition condition_from_json(const Json& json, const std::string& path) {
  const JsonFields fields(json, path);
  WorldCondition condition;
  fields.get("what", condition.what);
  fields.get("begin", condition.begin);
  fields.get("end", condition.end);
  fields.get("delivers", condition.delivers);
  return condition;
}

Json to_json(const EpochSamples& samples) {
  return {{"epoch", samples.epoch}, {"complete", samples.complete}, {"indices", samples.indices}};
}

EpochSamples epoch_from_json(const Json& json, const std::string& path) {
  const JsonFields fields(json, path);
  EpochSamples samples;
  fields.get("epoch", samples.epoch);
  fields.get("complete", samples.complete);
  fields.get("indices", samples.indices);
  return samples;
}

template <typename T>
Json list_to_json(const std::vector<T>& list) {
  Json json = Json::array();
  for (const T& element : list) json.push_back(to_json(element));
  return json;
}

/// True for the incomplete collectives and the last completed one.
bool tells_where_rank_stands(const std::vector<CollectiveRecord>& flight, std::size_t i) {
  if (flight[i].state != CollectiveState::kCompleted) return true;
  return std::none_of(
      flight.begin() + static_cast<std::ptrdiff_t>(i) + 1, flight.end(),
      [](const CollectiveRecord& later) { return later.state == CollectiveState::kCompleted; });
}

Json to_json(const BucketSummary& bucket, ParameterLists& lists) {
  const auto names = std::make_shared<const std::vector<std::string>>(bucket.parameters);
  return {{"index", bucket.index},
          {"bytes", bucket.bytes},
          {"elements", bucket.elements},
          {"parameters", lists.position_of(names)}};
}

/// How the rank stands: its state, its error, its progress.
Json state_to_json(const RankReport& report, ParameterLists& lists) {
  return {
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
  };
}

void add_ddp(Json& json, const RankReport& report, Json buckets) {
  json["parameter_tensors"] = report.parameter_tensors;
  json["parameter_count"] = report.parameter_count;
  json["parameter_bytes"] = report.parameter_bytes;
  json["rebuilt_buckets"] = report.rebuilt_buckets;
  json["buckets"] = std::move(buckets);
  json["comm_hook"] = report.comm_hook;
  json["warnings"] = report.warnings;
  json["ddp_logging"] = {{"strs_map", report.ddp_logging.strs_map},
                         {"ints_map", report.ddp_logging.ints_map}};
}

/// What the rank did beside its steps and collectives, and on what it ran.
void add_history(Json& json, const RankReport& report, bool is_summary) {
  json["batches_drawn"] = report.batches_drawn;
  json["first_step"] = report.first_step;
  json["config_hash"] = report.config_hash;
  json["device_claimed"] = report.device_claimed ? Json(*report.device_claimed) : Json();
  json["events"] = list_to_json(report.events);
  json["phases"] = is_summary ? Json::array() : list_to_json(report.phases);
  json["epochs"] = is_summary ? Json::array() : list_to_json(report.epochs);
  json["tensors"] = is_summary ? Json::array() : Json(report.tensors);
  json["clean_up_since"] =
      report.clean_up_since ? json_number(report.clean_up_since->count()) : Json();
  json["unreachable"] = report.unreachable;
  json["world"] = list_to_json(report.world);
  json["buffer_count"] = is_summary ? 0 : report.buffer_count;
  json["final_parameter_hash"] = report.final_parameter_hash;
  json["peak_rss_bytes"] = report.peak_rss_bytes;
}

}  // namespace

Json to_json(const RankReport& report, ReportDetail detail) {
  const bool is_summary = detail == ReportDetail::kSummary;
  ParameterLists lists;
  Json buckets = Json::array();
  Json steps = Json::array();
  Json collectives = Json::array();
  Json flight = Json::array();
  for (const BucketSummary& bucket : report.buckets) {
    if (!is_summary) buckets.push_back(to_json(bucket, lists));
  }
  if (detail == ReportDetail::kAll) {
    for (const StepRecord& step : report.steps) steps.push_back(to_json(step));
    for (const CollectiveRecord& record : report.collectives) {
      collectives.push_back(to_json(record, lists));
    }
  }
  for (std::size_t i = 0; i < report.flight.size(); ++i) {
    if (!is_summary || tells_where_rank_stands(report.flight, i)) {
      flight.push_back(to_json(report.flight[i], lists));
    }
  }
  Json json = state_to_json(report, lists);
  add_ddp(json, report, std::move(buckets));
  add_history(json, report, is_summary);
  json["steps"] = std::move(steps);
  json["collectives"] = std::move(collectives);
  json["flight"] = std::move(flight);
  json["parameter_lists"] = lists.to_json();
  return json;
}

namespace {

void read_ddp(const JsonFields& fields, const ParameterLists& lists, RankReport& report) {
  fields.get("parameter_tensors", report.parameter_tensors);
  fields.get("parameter_count", report.parameter_count);
  fields.get("parameter_bytes", report.parameter_bytes);
  fields.get("rebuilt_buckets", report.rebuilt_buckets);
  report.buckets = list_from_json<BucketSummary>(fields, "buckets",
                                                 [&](const Json& element, const std::string& path) {
                                                   return bucket_from_json(element, lists, path);
                                                 });
  fields.get("comm_hook", report.comm_hook);
  fields.get("warnings", report.warnings);
  const JsonFields logging = fields.object("ddp_logging");
  logging.get("strs_map", report.ddp_logging.strs_map);
  logging.get("ints_map", report.ddp_logging.ints_map);
}

void read_history(const JsonFields& fields, RankReport& report) {
  fields.get("batches_drawn", report.batches_drawn);
  fields.get("first_step", report.first_step);
  fields.get("config_hash", report.config_hash);
  fields.get("device_claimed", report.device_claimed);
  report.events = list_from_json<RankEvent>(fields, "events", event_from_json);
  report.phases = list_from_json<PhaseChange>(fields, "phases", phase_from_json);
  report.epochs = list_from_json<EpochSamples>(fields, "epochs", epoch_from_json);
  fields.get("tensors", report.tensors);
  fields.get("clean_up_since", report.clean_up_since);
  fields.get("unreachable", report.unreachable);
  report.world = list_from_json<WorldCondition>(fields, "world", condition_from_json);
  fields.get("buffer_count", report.buffer_count);
  fields.get("final_parameter_hash", report.final_parameter_hash);
  fields.get("peak_rss_bytes", report.peak_rss_bytes);
}

}  // namespace

RankReport rank_report_from_json(const Json& json, const std::string& place) {
  const JsonFields fields(json, place);
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
    fields.get_word("error_code", report.error_code.emplace(), ErrorCode::kInvalidConfig,
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
  read_ddp(fields, lists, report);
  read_history(fields, report);
  report.steps = list_from_json<StepRecord>(fields, "steps", step_from_json);
  report.collectives = list_from_json<CollectiveRecord>(fields, "collectives", record);
  report.flight = list_from_json<CollectiveRecord>(fields, "flight", record);
  return report;
}

RankReport rank_report_from_text(const std::string& text, const std::string& source) {
  const Json json = try_parse_json(text);
  if (json.is_discarded()) {
    throw Error(ErrorCode::kUsage,
                fmt::format("{}: expected the report of a rank, found {} bytes that are no JSON",
                            source, text.size()));
  }
  return rank_report_from_json(json, source);
}

}  // namespace gradsync
