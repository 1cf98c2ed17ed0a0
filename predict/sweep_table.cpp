// A sweep as text, CSV, Markdown and JSON.
#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gradsync/predict/sweep.hpp"

namespace gradsync {
namespace {

using Cells = std::vector<std::vector<std::string>>;  // heading first

/// The last component of a path if it distinguishes the axes, otherwise the whole path.
std::string short_name(const Sweep& sweep, const SweepAxis& axis) {
  const auto last = [](const std::string& path) { return path.substr(path.rfind('.') + 1); };
  const auto same =
      std::count_if(sweep.axes.begin(), sweep.axes.end(),
                    [&](const SweepAxis& other) { return last(other.path) == last(axis.path); });
  return same == 1 ? last(axis.path) : axis.path;
}

std::string ms(double seconds) {
  const double value = seconds * 1e3;
  return fmt::format("{:.{}f}", value, value < 1 ? 3 : value < 100 ? 2 : 1);
}

Cells cells_of(const Sweep& sweep) {
  Cells cells(1);
  for (const SweepAxis& axis : sweep.axes) cells[0].push_back(short_name(sweep, axis));
  for (const char* name : {"step_ms", "p95_ms", "forward_ms", "backward_ms", "exposed_ms",
                           "optimizer_ms", "comm_ms", "buckets", "outcome", "bottleneck"}) {
    cells[0].emplace_back(name);
  }
  for (const Sweep::Row& row : sweep.rows) {
    const PointResult& r = row.result;
    std::vector<std::string> line = row.values;
    line.insert(line.end(), {ms(r.step_p50), ms(r.step_p95), ms(r.forward), ms(r.backward),
                             ms(r.exposed), ms(r.optimizer), ms(r.communication),
                             std::to_string(r.buckets), r.outcome, r.bottleneck});
    cells.push_back(std::move(line));
  }
  return cells;
}

std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

}  // namespace

std::string sweep_text(const Sweep& sweep) {
  const Cells cells = cells_of(sweep);
  std::vector<std::size_t> widths(cells[0].size(), 0);
  for (const auto& line : cells) {
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  std::string text;
  for (std::size_t row = 0; row < cells.size(); ++row) {
    std::string line = row == 0 ? "#" : " ";
    for (std::size_t i = 0; i < cells[row].size(); ++i) {
      const bool is_last = i + 1 == cells[row].size();
      line += is_last ? "  " + cells[row][i] : fmt::format("  {:>{}}", cells[row][i], widths[i]);
    }
    text += line + "\n";
  }
  return text;
}

std::string sweep_csv(const Sweep& sweep) {
  std::string text;
  for (const auto& line : cells_of(sweep)) {
    for (std::size_t i = 0; i < line.size(); ++i) text += (i == 0 ? "" : ",") + csv_cell(line[i]);
    text += "\n";
  }
  return text;
}

std::string sweep_markdown(const Sweep& sweep) {
  const Cells cells = cells_of(sweep);
  std::string text;
  for (std::size_t row = 0; row < cells.size(); ++row) {
    for (const std::string& cell : cells[row]) text += "| " + cell + " ";
    text += "|\n";
    if (row > 0) continue;
    for (std::size_t i = 0; i < cells[0].size(); ++i) text += "| --- ";
    text += "|\n";
  }
  return text;
}

nlohmann::ordered_json to_json(const Sweep& sweep) {
  nlohmann::ordered_json axes = nlohmann::ordered_json::array();
  for (const SweepAxis& axis : sweep.axes) {
    axes.push_back({{"path", axis.path}, {"values", axis.values}});
  }
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const Sweep::Row& row : sweep.rows) {
    nlohmann::ordered_json values = nlohmann::ordered_json::object();
    for (std::size_t i = 0; i < sweep.axes.size(); ++i) values[sweep.axes[i].path] = row.values[i];
    nlohmann::ordered_json json = {{"values", values}, {"key", row.key}};
    json.update(to_json(row.result));
    rows.push_back(std::move(json));
  }
  return {{"schema_version", 1}, {"scenario", sweep.scenario}, {"axes", axes}, {"rows", rows}};
}

}  // namespace gradsync
