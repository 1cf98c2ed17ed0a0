#pragma once

#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "gradsync/comm/flight_recorder.hpp"
#include "gradsync/testbed/record/json_fields.hpp"

namespace gradsync {

/// The lists of parameter names that collectives refer to. The buckets of a model are the same in
/// every step, so a file holds each list once and its collectives the position in the table.
class ParameterLists {
 public:
  using List = std::shared_ptr<const std::vector<std::string>>;

  ParameterLists() = default;
  /// From "parameter_lists" of a file.
  ParameterLists(const nlohmann::ordered_json& json, const std::string& path);

  /// The position of `list`, which is entered if it is not there yet; null for a null list.
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
