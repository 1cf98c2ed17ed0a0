#include "gradsync/predict/bench_table.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gradsync/core/error.hpp"

namespace gradsync {
namespace {

constexpr std::array<std::pair<const char*, const char*>, 7> kTypes{{{"float32", "float"},
                                                                     {"float64", "double"},
                                                                     {"float16", "half"},
                                                                     {"bfloat16", "bfloat16"},
                                                                     {"int32", "int32"},
                                                                     {"int64", "int64"},
                                                                     {"uint8", "uint8"}}};

/// As many digits as fit the column: 7.31, 42.50, 1762.4, 183560.
std::string fitted(double value, std::size_t width) {
  for (int digits = 2; digits > 0; --digits) {
    std::string text = fmt::format("{:.{}f}", value, digits);
    if (text.size() <= width) return text;
  }
  return fmt::format("{:.0f}", value);
}

double microseconds(Seconds time) {
  return time.count() * 1e6;
}

}  // namespace

double algorithm_bandwidth(const BenchRow& row) {
  return row.time.count() > 0 ? static_cast<double>(row.bytes) / row.time.count() / 1e9 : 0;
}

double bus_bandwidth(const BenchRow& row, int ranks) {
  return algorithm_bandwidth(row) * 2.0 * (ranks - 1) / ranks;
}

double average_bus_bandwidth(const BenchTable& table) {
  double sum = 0;
  for (const BenchRow& row : table.rows) sum += bus_bandwidth(row, table.ranks);
  return table.rows.empty() ? 0 : sum / static_cast<double>(table.rows.size());
}

std::int64_t wrong_elements(const BenchTable& table) {
  std::int64_t wrong = 0;
  for (const BenchRow& row : table.rows) wrong += row.wrong.value_or(0);
  return wrong;
}

std::string bench_type_name(std::string_view dtype) {
  for (const auto& [ours, theirs] : kTypes) {
    if (dtype == ours) return theirs;
  }
  return std::string(dtype);
}

std::size_t bench_type_size(std::string_view name) {
  using Sized = std::pair<std::string_view, std::size_t>;
  constexpr std::array<Sized, 21> kSizes{
      {{"int8", 1},     {"uint8", 1},    {"char", 1},   {"f8e4m3", 1},  {"f8e5m2", 1},
       {"fp8_e4m3", 1}, {"fp8_e5m2", 1}, {"half", 2},   {"fp16", 2},    {"float16", 2},
       {"bfloat16", 2}, {"bf16", 2},     {"float", 4},  {"float32", 4}, {"int32", 4},
       {"uint32", 4},   {"int", 4},      {"double", 8}, {"int64", 8},   {"uint64", 8},
       {"float64", 8}}};
  for (const auto& [known, size] : kSizes) {
    if (name == known) return size;
  }
  return 0;
}

std::string bench_heading(const std::string& program, int ranks) {
  const auto line = [](auto... words) {
    return fmt::format("# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}  {:>7}  {:>6}  {:>6}  {:>6}\n",
                       words...);
  };
  return fmt::format("# {}, {} ranks\n#\n", program, ranks) +
         line("", "", "", "", "", "", "in-place", "", "") +
         line("size", "count", "type", "redop", "root", "time", "algbw", "busbw", "#wrong") +
         line("(B)", "(elements)", "", "", "", "(us)", "(GB/s)", "(GB/s)", "");
}

std::string bench_line(const BenchRow& row, int ranks) {
  return fmt::format("  {:>10}  {:>12}  {:>8}  {:>6}  {:>6}  {:>7}  {:>6}  {:>6}  {:>6}\n",
                     row.bytes, row.count, row.type, "sum", -1, fitted(microseconds(row.time), 7),
                     fitted(algorithm_bandwidth(row), 6), fitted(bus_bandwidth(row, ranks), 6),
                     row.wrong ? std::to_string(*row.wrong) : "N/A");
}

std::string bench_footer(const BenchTable& table) {
  const bool checked = std::any_of(table.rows.begin(), table.rows.end(),
                                   [](const BenchRow& row) { return row.wrong.has_value(); });
  const std::int64_t wrong = wrong_elements(table);
  return fmt::format("# {:<20} : {} {}\n# {:<20} : {:.4g}\n", "Out of bounds values", wrong,
                     !checked     ? "unchecked"
                     : wrong == 0 ? "OK"
                                  : "FAILED",
                     "Avg bus bandwidth", average_bus_bandwidth(table));
}

Bytes parse_bench_size(const std::string& text) {
  const auto refuse = [&]() -> Error {
    return Error(
        ErrorCode::kUsage,
        "a size such as 8, 32K, 128M (powers of 1024) or 25MiB was expected, not \"" + text + "\"");
  };
  std::size_t end = 0;
  double number = 0;
  try {
    number = std::stod(text, &end);
  } catch (const std::logic_error&) {
    throw refuse();
  }
  const std::string unit = text.substr(end);
  double factor = 0;
  if (unit.empty()) factor = 1;
  if (unit == "K" || unit == "k") factor = 1024.0;
  if (unit == "M" || unit == "m") factor = 1024.0 * 1024;
  if (unit == "G" || unit == "g") factor = 1024.0 * 1024 * 1024;
  if (factor == 0) {
    try {
      return parse_bytes(text);
    } catch (const QuantityError&) {
      throw refuse();
    }
  }
  const double bytes = number * factor;
  if (!(bytes >= 1 && bytes < 1e15)) throw refuse();
  return static_cast<Bytes>(std::llround(bytes));
}

nlohmann::ordered_json to_json(const BenchRow& row, int ranks) {
  nlohmann::ordered_json in_place = {{"time", microseconds(row.time)},
                                     {"alg_bw", algorithm_bandwidth(row)},
                                     {"bus_bw", bus_bandwidth(row, ranks)},
                                     {"nwrong", nullptr}};
  if (row.wrong) in_place["nwrong"] = *row.wrong;
  nlohmann::ordered_json json = {{"size", row.bytes}, {"count", row.count}, {"type", row.type},
                                 {"redop", "sum"},    {"root", -1},         {"in_place", in_place}};
  if (row.median) json["in_place_per_iter"] = {{"p50_us", microseconds(*row.median)}};
  return json;
}

nlohmann::ordered_json to_json(const BenchTable& table) {
  nlohmann::ordered_json results = nlohmann::ordered_json::array();
  for (const BenchRow& row : table.rows) results.push_back(to_json(row, table.ranks));
  return {
      {"program", table.program},
      {"config", {{"ranks", table.ranks}}},
      {"results", results},
      {"out_of_bounds", {{"count", wrong_elements(table)}, {"okay", wrong_elements(table) == 0}}},
      {"average_bus_bandwidth", {{"bandwidth", average_bus_bandwidth(table)}}}};
}

}  // namespace gradsync
