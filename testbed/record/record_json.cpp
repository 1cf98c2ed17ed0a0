#include "gradsync/testbed/record/record_json.hpp"

#include <algorithm>

namespace gradsync {
namespace {

using Json = nlohmann::ordered_json;

}  // namespace

ParameterLists::ParameterLists(const Json& json, const std::string& path) {
  if (!json.is_array()) JsonFields::fail(path, "an array of lists of names", json);
  for (const Json& list : json) {
    const bool names =
        list.is_array() &&
        std::all_of(list.begin(), list.end(), [](const Json& name) { return name.is_string(); });
    if (!names) JsonFields::fail(path, "a list of names", list);
    lists_.push_back(
        std::make_shared<const std::vector<std::string>>(list.get<std::vector<std::string>>()));
  }
}

Json ParameterLists::position_of(const List& list) {
  if (list == nullptr) return nullptr;
  // Compare addresses first: the collectives of a bucket share one list.
  auto found = std::find(lists_.begin(), lists_.end(), list);
  if (found == lists_.end()) {
    found = std::find_if(lists_.begin(), lists_.end(),
                         [&](const List& other) { return *other == *list; });
  }
  if (found == lists_.end()) found = lists_.insert(lists_.end(), list);
  return static_cast<std::size_t>(found - lists_.begin());
}

ParameterLists::List ParameterLists::at(const Json& position, const std::string& path) const {
  if (position.is_null()) return nullptr;
  const bool known = position.is_number_integer() && position.get<std::int64_t>() >= 0 &&
                     position.get<std::size_t>() < lists_.size();
  if (!known) {
    JsonFields::fail(path, fmt::format("a position below {} in parameter_lists", lists_.size()),
                     position);
  }
  return lists_[position.get<std::size_t>()];
}

Json ParameterLists::to_json() const {
  Json json = Json::array();
  for (const List& list : lists_) json.push_back(*list);
  return json;
}

Json to_json(const CollectiveRecord& record, ParameterLists& lists) {
  const CollectiveLabel& label = record.label;
  return {
      {"sequence", record.sequence},
      {"group", record.group},
      {"op", to_string(record.op)},
      {"reduce_op", to_string(record.reduce_op)},
      {"root", record.root},
      {"elements", record.elements},
      {"dtype", to_string(record.dtype)},
      {"bytes", record.bytes},
      {"epoch", label.epoch},
      {"step", label.step},
      {"micro_step", label.micro_step},
      {"phase", to_string(label.phase)},
      {"bucket", label.bucket},
      {"what", label.what},
      {"site", label.site},
      {"parameters", lists.position_of(record.parameters)},
      {"state", to_string(record.state)},
      {"issued", json_number(record.issued.count())},
      {"started", json_number(record.started.count())},
      {"completed", json_number(record.completed.count())},
      {"error", record.error},
  };
}

CollectiveRecord record_from_json(const Json& json, const ParameterLists& lists,
                                  const std::string& path) {
  const JsonFields fields(json, path);
  CollectiveRecord record;
  fields.get("sequence", record.sequence);
  constexpr std::int64_t kMostCollectives = std::int64_t{1} << 53;  // exact in any JSON reader
  // -1: the collective failed before it got a number.
  if (record.sequence < -1 || record.sequence > kMostCollectives) {
    JsonFields::fail(fields.path_of("sequence"), "a sequence number", json["sequence"]);
  }
  fields.get("group", record.group);
  fields.get_word("op", record.op, OpType::kAllreduce, OpType::kBarrier);
  fields.get_word("reduce_op", record.reduce_op, ReduceOp::kSum, ReduceOp::kAverage);
  fields.get("root", record.root);
  fields.get("elements", record.elements);
  std::string dtype;
  fields.get("dtype", dtype);
  try {
    record.dtype = parse_dtype(dtype);
  } catch (const std::invalid_argument&) {
    JsonFields::fail(fields.path_of("dtype"), "a data type", json["dtype"]);
  }
  fields.get("bytes", record.bytes);
  fields.get("epoch", record.label.epoch);
  fields.get("step", record.label.step);
  fields.get("micro_step", record.label.micro_step);
  fields.get_word("phase", record.label.phase, Phase::kInit, Phase::kShutdown);
  fields.get("bucket", record.label.bucket);
  fields.get("what", record.label.what);
  fields.get("site", record.label.site);
  record.parameters = lists.at(fields.at("parameters"), fields.path_of("parameters"));
  fields.get_word("state", record.state, CollectiveState::kScheduled, CollectiveState::kFailed);
  fields.get("issued", record.issued);
  fields.get("started", record.started);
  fields.get("completed", record.completed);
  fields.get("error", record.error);
  return record;
}

}  // namespace gradsync
