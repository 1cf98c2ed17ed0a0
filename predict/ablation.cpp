#include "gradsync/predict/ablation.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gradsync/core/json_text.hpp"

namespace gradsync {
namespace {

using Json = nlohmann::ordered_json;

ScenarioOverride assignment(const std::string& path, const Json& value) {
  return {path, dump_json(value), "ablate's " + path + "=" + dump_json(value)};
}

/// Adds one ablation for each entry of the list at `pointer`: removes the entry, or, if it must
/// keep its position, replaces it by `neutral`.
void add_entries(std::vector<Ablation>& all, const Json& scenario, const std::string& pointer,
                 const std::string& path, const Json& neutral = {}) {
  const Json& list = scenario.at(Json::json_pointer(pointer));
  for (std::size_t i = 0; i < list.size(); ++i) {
    Json changed = list;
    if (neutral.is_null()) {
      changed.erase(i);
    } else {
      changed[i].update(neutral);
    }
    all.push_back(
        {fmt::format("{}/{}", pointer, i), dump_json(list[i]), {assignment(path, changed)}});
  }
}

void add_number(std::vector<Ablation>& all, const Json& scenario, const std::string& name,
                double neutral) {
  const std::string pointer = "/imperfections/compute/" + name;
  const Json& value = scenario.at(Json::json_pointer(pointer));
  if (value.get<double>() == neutral) return;
  all.push_back(
      {pointer, dump_json(value), {assignment("imperfections.compute." + name, neutral)}});
}

bool completed(const PointResult& point) {
  return point.outcome == "completed";
}

std::string ms(double seconds) {
  return fmt::format("{:.4g} ms", seconds * 1e3);
}

std::string times(const PointResult& point) {
  if (!completed(point)) return fmt::format("{:>35}", point.outcome);
  return fmt::format("{:>13}{:>11}{:>11}", ms(point.period), ms(point.step_p50),
                     ms(point.step_p95));
}

const std::string kAll = "all of these";

std::string line(const AblationAnswer& answer, const AblationAnswer::Row& row, std::size_t width) {
  const bool comparable = completed(answer.as_is) && completed(row.result);
  const std::string part =
      comparable ? fmt::format("{:.1f}%", cost(answer, row) * 100) : std::string("-");
  const bool all = row.without.pointer.empty();
  std::string text = fmt::format("  {:<{}}{}{:>9}", all ? kAll : row.without.pointer, width,
                                 times(row.result), part);
  if (!all) text += "   " + row.without.entry;
  return text + "\n";
}

}  // namespace

std::vector<Ablation> ablations(const Scenario& scenario) {
  const Json resolved = to_json(scenario);
  std::vector<Ablation> all;
  add_number(all, resolved, "spread", 0);
  add_number(all, resolved, "jitter", 0);
  add_number(all, resolved, "while_communicating", 1);
  const std::pair<std::string, Json> lists[] = {{"slow_ranks", {}},
                                                {"late_ranks", {}},
                                                {"loader_stalls", {{"probability", 0}}},
                                                {"links", {}},
                                                {"traffic", {{"flows", 0}}}};
  for (const auto& [list, neutral] : lists) {
    add_entries(all, resolved, "/imperfections/" + list, "imperfections." + list, neutral);
  }
  add_entries(all, resolved, "/faults", "faults");
  if (all.size() > 1) {
    all.push_back(
        {"",
         "",
         {assignment("imperfections", Json::object()), assignment("faults", Json::array())}});
  }
  return all;
}

double cost(const AblationAnswer& answer, const AblationAnswer::Row& row) {
  const double as_is = answer.as_is.period;
  if (!completed(answer.as_is) || !completed(row.result) || as_is <= 0) return 0;
  return 1 - row.result.period / as_is;
}

std::string describe(const AblationAnswer& answer) {
  std::vector<const AblationAnswer::Row*> rows;
  for (const AblationAnswer::Row& row : answer.rows) rows.push_back(&row);
  const auto is_all = [](const AblationAnswer::Row* row) { return row->without.pointer.empty(); };
  std::stable_sort(rows.begin(), rows.end(), [&](const auto* a, const auto* b) {
    if (is_all(a) != is_all(b)) return is_all(b);
    return cost(answer, *a) > cost(answer, *b);
  });
  const std::string as_is = "nothing (as it is)";
  std::size_t width = as_is.size();
  for (const AblationAnswer::Row* row : rows) width = std::max(width, row->without.pointer.size());
  std::string text = fmt::format("  {:<{}}{:>13}{:>11}{:>11}{:>9}\n", "without", width,
                                 "step period", "p50", "p95", "costs");
  text += fmt::format("  {:<{}}{}\n", as_is, width, times(answer.as_is));
  for (const AblationAnswer::Row* row : rows) text += line(answer, *row, width);
  const auto explain = [&](const std::string& which, const PointResult& point) {
    if (!completed(point) && !point.error.empty()) {
      text += fmt::format("{}: {}\n", which, point.error);
    }
  };
  explain("as it is", answer.as_is);
  for (const AblationAnswer::Row* row : rows) {
    explain("without " + (is_all(row) ? kAll : row->without.pointer), row->result);
  }
  if (rows.size() > 1 && completed(answer.as_is)) {
    text +=
        "Each row: the cost of that item with all others active. Last row: all of them together.\n";
  }
  return text;
}

Json to_json(const AblationAnswer& answer) {
  Json rows = Json::array();
  for (const AblationAnswer::Row& row : answer.rows) {
    const bool all = row.without.pointer.empty();
    Json json = {{"without", all ? Json() : Json(row.without.pointer)},
                 {"entry", all ? Json() : parse_json(row.without.entry)},
                 {"cost", cost(answer, row)}};
    json.update(to_json(row.result));
    rows.push_back(std::move(json));
  }
  return {{"schema_version", 1}, {"as_is", to_json(answer.as_is)}, {"rows", rows}};
}

}  // namespace gradsync
