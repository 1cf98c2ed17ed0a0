#pragma once

#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "gradsync/comm/flight_recorder.hpp"
#include "gradsync/testbed/record/json_fields.hpp"

namespace gradsync {

/// The lists of parameter names that collectives refer to. A model's buckets are the same in every
/// step, so a file stores each list once and its collectives store the index.
class ParameterLists {
 public:
  using List = std::shared_ptr<const std::vector<std::string>>;

  ParameterLists() = default;
  /// From "parameter_lists" of a file.
  ParameterLists(const nlohmann::ordered_json& json, const std::string& path);

  /// The index of `list`, which is added if it is new; null for a null list.
  nlohmann::ordered_json position_of(const List& list);
  /// Null for null.
  List at(const nlohmann::ordered_json& position, const std::string& path) const;
  nlohmann::ordered_json to_json() const;

 private:
  std::vector<List> lists_;
};

nlohmann::ordered_json to_json(const CollectiveRecord& record, ParameterLists& lists);
CollectiveRecord record_from_json(const nlohmann::ordered_json& json, const ParameterLists& lists,
                                  const std::string& path);

}  // namespace gradsync
