// Names, numbers and the table of the collective benchmark.

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gradsync/core/error.hpp"
#include "gradsync/predict/collective_bench.hpp"

namespace gradsync {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array kOps{BenchOp::kBroadcast,     BenchOp::kReduce,   BenchOp::kAllgather,
                          BenchOp::kReduceScatter, BenchOp::kAlltoall, BenchOp::kSendrecv};

/// In `width` characters: as many decimals as fit, at most two, as nccl-tests prints.
std::string fitted(double value, std::size_t width) {
  for (int decimals = 2; decimals > 0; --decimals) {
    std::string text = fmt::format("{:.{}f}", value, decimals);
    if (text.size() <= width) return text;
  }
  return fmt::format("{:.0f}", value);
}

double algbw(const CollectiveRow& row, const BenchTiming& timing) {
  const double seconds = timing.time.count();
  return seconds > 0 ? static_cast<double>(row.bytes) / seconds / 1e9 : 0;
}

bool has_root(BenchOp op) {
  return op == BenchOp::kBroadcast || op == BenchOp::kReduce;
}

const char* redop(BenchOp op) {
  return op == BenchOp::kReduce || op == BenchOp::kReduceScatter ? "sum" : "none";
}

std::string columns(const CollectiveRow& row, const std::optional<BenchTiming>& timing, BenchOp op,
                    int ranks) {
  constexpr const char* kFormat = "  {:>7}  {:>6}  {:>6}  {:>6}";
  if (!timing) return fmt::format(kFormat, "N/A", "N/A", "N/A", "N/A");
  const double rate = algbw(row, *timing);
  return fmt::format(kFormat, fitted(timing->time.count() * 1e6, 7), fitted(rate, 6),
                     fitted(rate * bus_factor(op, ranks), 6),
                     timing->wrong ? std::to_string(*timing->wrong) : "N/A");
}

template <typename Visit>
void for_each_timing(const std::vector<CollectiveRow>& rows, const Visit& visit) {
  for (const CollectiveRow& row : rows) {
    for (const auto* timing : {&row.out_of_place, &row.in_place}) {
      if (*timing) visit(row, **timing);
    }
  }
}

double average_busbw(const std::vector<CollectiveRow>& rows, BenchOp op, int ranks) {
  double sum = 0;
  int count = 0;
  for_each_timing(rows, [&](const CollectiveRow& row, const BenchTiming& timing) {
    sum += algbw(row, timing) * bus_factor(op, ranks);
    ++count;
  });
  return count == 0 ? 0 : sum / count;
}

Json timing_json(const BenchTiming& timing) {
  Json json = {{"seconds", timing.time.count()}, {"median_seconds", timing.median.count()}};
  if (timing.wrong) json["wrong"] = *timing.wrong;
  return json;
}

std::optional<BenchTiming> timing_from(const Json& json, const char* key) {
  if (!json.contains(key)) return std::nullopt;
  const Json& from = json.at(key);
  BenchTiming timing;
  timing.time = Seconds(from.at("seconds").get<double>());
  timing.median = Seconds(from.at("median_seconds").get<double>());
  if (from.contains("wrong")) timing.wrong = from.at("wrong").get<std::int64_t>();
  return timing;
}

}  // namespace

const char* to_string(BenchOp op) noexcept {
  switch (op) {
    case BenchOp::kBroadcast:
      return "broadcast";
    case BenchOp::kReduce:
      return "reduce";
    case BenchOp::kAllgather:
      return "allgather";
    case BenchOp::kReduceScatter:
      return "reduce_scatter";
    case BenchOp::kAlltoall:
      return "alltoall";
    case BenchOp::kSendrecv:
      return "sendrecv";
  }
  return "unknown";
}

BenchOp parse_bench_op(const std::string& name) {
  for (const BenchOp op : kOps) {
    if (name == to_string(op)) return op;
  }
  throw Error(ErrorCode::kUsage, "there is no benchmark \"" + name + "\"");
}

double bus_factor(BenchOp op, int ranks) noexcept {
  const bool parts =
      op == BenchOp::kAllgather || op == BenchOp::kReduceScatter || op == BenchOp::kAlltoall;
  return parts ? static_cast<double>(ranks - 1) / ranks : 1;
}

Json to_json(const CollectiveBench& bench) {
  return {{"op", to_string(bench.op)},
          {"options", to_json(bench.options)},
          {"root", bench.root},
          {"grouped", bench.grouped}};
}

CollectiveBench collective_bench_from_json(const Json& json) {
  CollectiveBench bench;
  bench.op = parse_bench_op(json.at("op").get<std::string>());
  bench.options = allreduce_bench_from_json(json.at("options"));
  bench.root = json.at("root");
  bench.grouped = json.at("grouped");
  return bench;
}

Json to_json(const CollectiveRow& row) {
  Json json = {{"bytes", row.bytes}, {"count", row.count}, {"type", row.type}};
  if (row.out_of_place) json["out_of_place"] = timing_json(*row.out_of_place);
  if (row.in_place) json["in_place"] = timing_json(*row.in_place);
  return json;
}

CollectiveRow collective_row_from_json(const Json& json) {
  CollectiveRow row;
  row.bytes = json.at("bytes");
  row.count = json.at("count");
  row.type = json.at("type");
  row.out_of_place = timing_from(json, "out_of_place");
  row.in_place = timing_from(json, "in_place");
  return row;
}

std::string collective_heading(const std::string& program, int ranks) {
  constexpr const char* kLeft = "# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}";
  constexpr const char* kRight = "  {:>7}  {:>6}  {:>6}  {:>6}";
  const auto line = [&](const std::string& left, const std::string& out, const std::string& in) {
    std::string text = left + out + in;
    text.erase(text.find_last_not_of(' ') + 1);
    return text + "\n";
  };
  const std::string names = fmt::format(kRight, "time", "algbw", "busbw", "#wrong");
  const std::string units = fmt::format(kRight, "(us)", "(GB/s)", "(GB/s)", "");
  return fmt::format("# {}, {} ranks\n#\n", program, ranks) +
         line(fmt::format(kLeft, "", "", "", "", ""),
              fmt::format(kRight, "", "out-of-place", "", ""),
              fmt::format(kRight, "", "in-place", "", "")) +
         line(fmt::format(kLeft, "size", "count", "type", "redop", "root"), names, names) +
         line(fmt::format(kLeft, "(B)", "(elements)", "", "", ""), units, units);
}

std::string collective_line(const CollectiveRow& row, const CollectiveBench& bench, int ranks) {
  return fmt::format("  {:>10}  {:>12}  {:>8}  {:>6}  {:>6}", row.bytes, row.count, row.type,
                     redop(bench.op), has_root(bench.op) ? bench.root : -1) +
         columns(row, row.out_of_place, bench.op, ranks) +
         columns(row, row.in_place, bench.op, ranks) + "\n";
}

std::int64_t wrong_elements(const std::vector<CollectiveRow>& rows) {
  std::int64_t wrong = 0;
  for_each_timing(rows, [&](const CollectiveRow&, const BenchTiming& timing) {
    wrong += timing.wrong.value_or(0);
  });
  return wrong;
}

std::string collective_footer(const std::vector<CollectiveRow>& rows, BenchOp op, int ranks) {
  bool checked = false;
  for_each_timing(rows, [&](const CollectiveRow&, const BenchTiming& timing) {
    checked = checked || timing.wrong.has_value();
  });
  const std::int64_t wrong = wrong_elements(rows);
  return fmt::format("# {:<20} : {} {}\n# {:<20} : {:.4g}\n", "Out of bounds values", wrong,
                     !checked     ? "unchecked"
                     : wrong == 0 ? "OK"
                                  : "FAILED",
                     "Avg bus bandwidth", average_busbw(rows, op, ranks));
}

Json collective_table_json(const std::string& program, const std::vector<CollectiveRow>& rows,
                           const CollectiveBench& bench, int ranks) {
  Json results = Json::array();
  for (const CollectiveRow& row : rows) {
    Json result = {{"size", row.bytes},
                   {"count", row.count},
                   {"type", row.type},
                   {"redop", redop(bench.op)},
                   {"root", has_root(bench.op) ? bench.root : -1}};
    const auto add = [&](const char* name, const std::optional<BenchTiming>& timing) {
      if (!timing) return;
      const double rate = algbw(row, *timing);
      Json way = {{"time", timing->time.count() * 1e6},
                  {"alg_bw", rate},
                  {"bus_bw", rate * bus_factor(bench.op, ranks)}};
      way["nwrong"] = timing->wrong ? Json(*timing->wrong) : Json(nullptr);
      result[name] = std::move(way);
    };
    add("out_of_place", row.out_of_place);
    add("in_place", row.in_place);
    results.push_back(std::move(result));
  }
  const std::int64_t wrong = wrong_elements(rows);
  return {{"program", program},
          {"op", to_string(bench.op)},
          {"ranks", ranks},
          {"results", std::move(results)},
          {"out_of_bounds", {{"count", wrong}, {"okay", wrong == 0}}},
          {"average_bus_bandwidth", {{"bandwidth", average_busbw(rows, bench.op, ranks)}}}};
}

}  // namespace gradsync
