#include "gradsync/predict/accuracy.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "gradsync/core/error.hpp"
#include "gradsync/core/json_text.hpp"
#include "gradsync/predict/bench_table.hpp"
#include "gradsync/testbed/record/files.hpp"

namespace gradsync {
namespace {

using Json = nlohmann::ordered_json;

constexpr Bytes kMiB = 1024 * 1024;
constexpr double kLargeBudget = 0.10, kSmallBudget = 0.25, kStepBudget = 0.08;

double budget_of(const AccuracyRow& row) {
  if (row.bytes == 0) return kStepBudget;
  return row.bytes > kMiB ? kLargeBudget : kSmallBudget;
}

class TableReader {
 public:
  explicit TableReader(const std::filesystem::path& file) : file_(file.string()) {
    json_ = try_parse_json(read_file(file));
    if (!json_.is_object()) fail("", "a JSON object", json_);
  }

  AccuracyTable read() const {
    AccuracyTable table;
    table.file = file_;
    table.name = text("name");
    table.source = text("source");
    table.machines = text("machines");
    const std::string kind = text("kind");
    if (kind != "allreduce" && kind != "training") {
      fail("/kind", "\"allreduce\" or \"training\"", json_.at("kind"));
    }
    table.is_training = kind == "training";
    const Json fitted = json_.value("fitted", Json::array());
    if (!fitted.is_array() || fitted.size() > 2) fail("/fitted", "two names at the most", fitted);
    for (const Json& name : fitted) table.fitted.push_back(name.get<std::string>());
    table.beyond_budget = json_.value("beyond_budget", "");
    if (json_.contains("left_out")) table.left_out = json_.at("left_out");
    table.scenario = member(json_, "", "scenario");
    const Json& rows = member(json_, "", "rows");
    for (std::size_t i = 0; i < rows.size(); ++i) {
      table.rows.push_back(row(table, rows[i], fmt::format("/rows/{}", i)));
    }
    return table;
  }

 private:
  [[noreturn]] void fail(const std::string& pointer, const std::string& expected,
                         const Json& found) const {
    throw ConfigError({file_, pointer, expected, dump_json(found).substr(0, 80), ""});
  }
  const Json& member(const Json& object, const std::string& pointer, const char* key) const {
    if (!object.contains(key)) fail(pointer, fmt::format("a key \"{}\"", key), object);
    return object.at(key);
  }
  std::string text(const char* key) const {
    const Json& value = member(json_, "", key);
    if (!value.is_string()) fail(fmt::format("/{}", key), "a text", value);
    return value.get<std::string>();
  }

  AccuracyRow row(const AccuracyTable& table, const Json& json, const std::string& pointer) const {
    AccuracyRow row;
    row.ranks = json.value("ranks", table.scenario.value("ranks", std::int64_t{0}));
    if (row.ranks < 1) fail(pointer, "ranks, here or in the scenario", json);
    if (table.is_training) {
      row.what = member(json, pointer, "what").get<std::string>();
      row.measured = Seconds(member(json, pointer, "step_ms").get<double>() * 1e-3);
      row.set = json.value("set", Json::object());
      return row;
    }
    row.what = member(json, pointer, "size").get<std::string>();
    row.bytes = parse_bench_size(row.what);
    if (json.contains("time_us")) {
      row.measured = Seconds(json.at("time_us").get<double>() * 1e-6);
    } else {
      const double busbw = member(json, pointer, "busbw").get<double>() * 1e9;
      const auto n = static_cast<double>(row.ranks);
      row.measured = Seconds(static_cast<double>(row.bytes) * 2 * (n - 1) / n / busbw);
    }
    return row;
  }

  std::string file_;
  Json json_;
};

AccuracyGroup group_of(const AccuracyTable& table, const char* part,
                       const std::vector<AccuracyRow>& rows) {
  AccuracyGroup group;
  group.table = table.name;
  group.part = part;
  group.rows = rows.size();
  group.geometric_mean = geometric_mean_error(rows);
  for (const AccuracyRow& row : rows) {
    if (std::abs(row.error()) > std::abs(group.worst)) group.worst = row.error();
  }
  group.budget = budget_of(rows.front());
  if (!table.left_out.is_null()) {
    std::vector<AccuracyRow> unseen = rows;
    for (AccuracyRow& row : unseen) row.simulated = row.left_out;
    group.cross_validated = geometric_mean_error(unseen);
  }
  const double counts = table.is_training ? std::abs(group.worst)
                                          : group.cross_validated.value_or(group.geometric_mean);
  group.within = counts <= group.budget;
  for (const std::string& name : table.fitted) {
    group.fitted += (group.fitted.empty() ? "" : ", ") + name;
  }
  group.is_outlier = !table.outlier_signs.empty();
  if (!group.within && !group.is_outlier) group.beyond_budget = table.beyond_budget;
  return group;
}

std::string percent(double value) {
  return fmt::format("{:+.1f}%", value * 100);
}

const char* verdict(const AccuracyGroup& group) {
  if (group.is_outlier) return "outlier";
  return group.within ? "ok" : "BEYOND";
}

std::string summary_line(const AccuracySummary& summary) {
  return fmt::format(
      "{}: geometric mean error {:.1f}% over {} tables; cross-validated {:.1f}% over {} tables\n",
      summary.part, summary.geometric_mean * 100, summary.tables, summary.cross_validated * 100,
      summary.cross_validated_tables);
}

/// The outliers with their signs, one line a table.
std::string outlier_lines(const std::vector<AccuracyTable>& tables, const char* bullet) {
  std::string text;
  for (const AccuracyTable& table : tables) {
    if (table.outlier_signs.empty()) continue;
    text += fmt::format("{}{}: {}\n", bullet, table.name, table.outlier_signs.front());
  }
  return text;
}

}  // namespace

AccuracyTable load_accuracy_table(const std::filesystem::path& file) {
  return TableReader(file).read();
}

double geometric_mean_error(const std::vector<AccuracyRow>& rows) {
  double sum = 0;
  for (const AccuracyRow& row : rows) sum += std::abs(std::log(row.simulated / row.measured));
  return rows.empty() ? 0 : std::exp(sum / static_cast<double>(rows.size())) - 1;
}

double weighted_error(const std::vector<AccuracyRow>& rows) {
  double sum = 0, weights = 0;
  for (const AccuracyRow& row : rows) {
    const double weight = 1 / budget_of(row);
    sum += weight * std::abs(std::log(row.simulated / row.measured));
    weights += weight;
  }
  return sum / weights;
}

std::vector<AccuracyGroup> judge(const AccuracyTable& table) {
  std::vector<AccuracyRow> large, small;
  for (const AccuracyRow& row : table.rows) (row.bytes > kMiB ? large : small).push_back(row);
  std::vector<AccuracyGroup> groups;
  if (table.is_training) {
    groups.push_back(group_of(table, "step time", table.rows));
  } else {
    if (!large.empty()) groups.push_back(group_of(table, "above 1 MiB", large));
    if (!small.empty()) groups.push_back(group_of(table, "up to 1 MiB", small));
  }
  return groups;
}

std::vector<AccuracySummary> summarize(const std::vector<AccuracyTable>& tables) {
  std::vector<AccuracySummary> parts = {{"above 1 MiB"}, {"up to 1 MiB"}};
  for (AccuracySummary& part : parts) {
    double fitted = 0, unseen = 0;
    for (const AccuracyTable& table : tables) {
      for (const AccuracyGroup& group : judge(table)) {
        if (group.is_outlier || group.part != part.part) continue;
        ++part.tables;
        fitted += std::log1p(group.geometric_mean);
        if (!group.cross_validated) continue;
        ++part.cross_validated_tables;
        unseen += std::log1p(*group.cross_validated);
      }
    }
    if (part.tables > 0) part.geometric_mean = std::expm1(fitted / part.tables);
    if (part.cross_validated_tables > 0) {
      part.cross_validated = std::expm1(unseen / part.cross_validated_tables);
    }
  }
  std::erase_if(parts, [](const AccuracySummary& part) { return part.tables == 0; });
  return parts;
}

std::string accuracy_text(const std::vector<AccuracyTable>& tables, bool with_rows) {
  std::string text;
  for (const AccuracyTable& table : tables) {
    text += table.name + "\n";
    if (!table.source.empty()) text += "  source: " + table.source + "\n";
    if (!table.machines.empty()) text += "  machines: " + table.machines + "\n";
    if (with_rows) {
      text +=
          fmt::format("  {:>34}{:>14}{:>14}{:>9}\n", "", "measured us", "simulated us", "error");
      for (const AccuracyRow& row : table.rows) {
        const std::string what =
            table.is_training ? row.what : fmt::format("{} on {}", row.what, row.ranks);
        text += fmt::format("  {:>34}{:>14.1f}{:>14.1f}{:>9}\n", what, row.measured.count() * 1e6,
                            row.simulated.count() * 1e6, percent(row.error()));
      }
    }
    for (const AccuracyGroup& group : judge(table)) {
      text += fmt::format(
          "  {:<12} {:>3} rows, geometric mean error {:.1f}%{}, worst {}; budget {:.0f}%{}: {}{}\n",
          group.part, group.rows, group.geometric_mean * 100,
          group.cross_validated
              ? fmt::format(", cross-validated {:.1f}%", *group.cross_validated * 100)
              : "",
          percent(group.worst), group.budget * 100, table.is_training ? " a row" : "",
          verdict(group), group.beyond_budget.empty() ? "" : "\n    " + group.beyond_budget);
    }
  }
  for (const AccuracySummary& summary : summarize(tables)) text += summary_line(summary);
  const std::string outliers = outlier_lines(tables, "  ");
  if (!outliers.empty()) text += "outliers, which have no budget:\n" + outliers;
  return text;
}

std::string accuracy_markdown(const std::vector<AccuracyTable>& tables) {
  std::string text =
      "| table | part | rows | geometric mean error | cross-validated | worst row | budget | |\n"
      "| --- | --- | --- | --- | --- | --- | --- | --- |\n";
  for (const AccuracyTable& table : tables) {
    for (const AccuracyGroup& group : judge(table)) {
      text += fmt::format(
          "| {} | {} | {} | {:.1f}% | {} | {} | {:.0f}%{} | {} |\n", group.table, group.part,
          group.rows, group.geometric_mean * 100,
          group.cross_validated ? fmt::format("{:.1f}%", *group.cross_validated * 100) : "",
          percent(group.worst), group.budget * 100, table.is_training ? " a row" : "",
          group.within || group.is_outlier ? verdict(group) : "**beyond**");
    }
  }
  text += '\n';
  for (const AccuracySummary& summary : summarize(tables)) text += "- " + summary_line(summary);
  const std::string outliers = outlier_lines(tables, "- ");
  if (!outliers.empty()) text += "\nOutliers, which have no budget:\n\n" + outliers;
  return text;
}

Json accuracy_json(const std::vector<AccuracyTable>& tables) {
  Json all = Json::array();
  for (const AccuracyTable& table : tables) {
    Json rows = Json::array();
    for (const AccuracyRow& row : table.rows) {
      rows.push_back({{"what", row.what},
                      {"ranks", row.ranks},
                      {"measured_seconds", row.measured.count()},
                      {"simulated_seconds", row.simulated.count()},
                      {"error", row.error()}});
    }
    Json groups = Json::array();
    for (const AccuracyGroup& group : judge(table)) {
      groups.push_back({{"part", group.part},
                        {"rows", group.rows},
                        {"geometric_mean_error", group.geometric_mean},
                        {"cross_validated_error",
                         group.cross_validated ? Json(*group.cross_validated) : Json(nullptr)},
                        {"worst_error", group.worst},
                        {"budget", group.budget},
                        {"within", group.within},
                        {"outlier", group.is_outlier},
                        {"beyond_budget", group.beyond_budget}});
    }
    all.push_back({{"name", table.name},
                   {"file", table.file.string()},
                   {"source", table.source},
                   {"fitted", table.fitted},
                   {"outlier_signs", table.outlier_signs},
                   {"groups", groups},
                   {"rows", rows}});
  }
  Json summaries = Json::array();
  for (const AccuracySummary& summary : summarize(tables)) {
    summaries.push_back({{"part", summary.part},
                         {"tables", summary.tables},
                         {"geometric_mean_error", summary.geometric_mean},
                         {"cross_validated_tables", summary.cross_validated_tables},
                         {"cross_validated_error", summary.cross_validated}});
  }
  return {{"schema_version", 1}, {"tables", all}, {"summary", summaries}};
}

}  // namespace gradsync
