#include "gradsync/testbed/result/events.hpp"

#include <filesystem>

#include "gradsync/core/json_text.hpp"
#include "gradsync/testbed/record/json_lines.hpp"
#include "gradsync/testbed/record/record_json.hpp"

namespace gradsync {
namespace {

using Json = nlohmann::ordered_json;

}  // namespace

std::string event_lines(const std::vector<RankReport>& reports, std::int64_t detail_ranks) {
  ParameterLists lists;
  std::string lines;
  for (const RankReport& report : reports) {
    if (report.rank >= detail_ranks) continue;
    for (const CollectiveRecord* record : all_collectives(report)) {
      lines += json_line(report.rank, to_json(*record, lists));
    }
  }
  return dump_json(Json{{"parameter_lists", lists.to_json()}}) + "\n" + lines;
}

std::map<int, std::vector<CollectiveRecord>> read_events(const std::string& directory) {
  std::map<int, std::vector<CollectiveRecord>> events;
  ParameterLists lists;
  bool first = true;
  for_each_json_line(std::filesystem::path(directory) / "events.jsonl",
                     [&](const Json& line, const std::string& place) {
                       const JsonFields fields(line, place);
                       if (first) {
                         lists = ParameterLists(fields.at("parameter_lists"),
                                                fields.path_of("parameter_lists"));
                         first = false;
                         return;
                       }
                       int rank = 0;
                       fields.get("rank", rank);
                       events[rank].push_back(record_from_json(line, lists, place));
                     });
  return events;
}

}  // namespace gradsync
