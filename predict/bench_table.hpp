#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "gradsync/core/units.hpp"

namespace gradsync {

/// One size of an all-reduce benchmark.
struct BenchRow {
  Bytes bytes = 0;  ///< of the tensor, on each rank
  std::int64_t count = 0;
  std::string type;                   ///< as nccl-tests spells it: "float", "half", ...
  Seconds time{0};                    ///< of one all-reduce: mean over iterations and ranks
  std::optional<Seconds> median;      ///< over iterations, mean over ranks; absent in many logs
  std::optional<std::int64_t> wrong;  ///< elements that were not the exact sum; absent: not checked
};

/// A benchmark's table: what nccl-tests prints, or what was read from its log.
struct BenchTable {
  std::string program;  ///< who measured, e.g. "gradsync bench, gloo"
  int ranks = 0;
  std::vector<BenchRow> rows;
  int nodes = 0;                     ///< 0: not known
  std::string device{};              ///< "NVIDIA H100 80GB HBM3"; empty: not known
  std::vector<std::string> notes{};  ///< what a reader of the log should tell: rows left out, ...

  /// Ranks of a node, where the log named its hosts: the most that any has.
  int ranks_per_node = 0;
};

/// nccl-tests' two bandwidths, in GB/s (1e9 bytes a second): bytes / time, and that times
/// 2(n-1)/n, the share of the bytes that every rank must send. The second is comparable to a link's
/// rate, whatever the number of ranks.
double algorithm_bandwidth(const BenchRow& row);
double bus_bandwidth(const BenchRow& row, int ranks);
/// Mean of the bus bandwidth over all rows; 0 for none.
double average_bus_bandwidth(const BenchTable& table);
/// Elements that were wrong, over all rows.
std::int64_t wrong_elements(const BenchTable& table);

/// nccl-tests' word for a dtype ("float" for "float32"), and back: both spellings are understood.
std::string bench_type_name(std::string_view dtype);
/// Bytes of an element of a type by the name that a benchmark's log has for it; 0: no such type.
std::size_t bench_type_size(std::string_view name);

// The table as nccl-tests prints it, with the columns of in-place operation only (DDP reduces its
// buckets in place). Lines are printed as they come, so each is a function.
std::string bench_heading(const std::string& program, int ranks);
std::string bench_line(const BenchRow& row, int ranks);
std::string bench_footer(const BenchTable& table);

/// A size as nccl-tests takes it: "8", "32K", "128M", "1G" in powers of 1024, and as gradsync does:
/// "25MiB", "10MB". Throws Error(kUsage) for anything else.
Bytes parse_bench_size(const std::string& text);

/// The JSON of nccl-tests' -J, as far as it applies: config, results[], out_of_bounds,
/// average_bus_bandwidth. Times are in microseconds there.
nlohmann::ordered_json to_json(const BenchTable& table);
nlohmann::ordered_json to_json(const BenchRow& row, int ranks);

}  // namespace gradsync
