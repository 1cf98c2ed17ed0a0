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
  std::string type;                   ///< nccl-tests' spelling: "float", "half", ...
  Seconds time{0};                    ///< per all-reduce: mean over iterations and ranks
  std::optional<Seconds> median;      ///< over iterations, mean over ranks; absent in many logs
  std::optional<std::int64_t> wrong;  ///< elements that are not exact; absent: not checked
};

/// A benchmark's table, measured or read from a log.
struct BenchTable {
  std::string program;  ///< origin, e.g. "gradsync bench, gloo"
  int ranks = 0;
  std::vector<BenchRow> rows;
  int nodes = 0;                     ///< 0: unknown
  std::string device{};              ///< "NVIDIA H100 80GB HBM3"; empty: unknown
  std::vector<std::string> notes{};  ///< for readers of the log: rows left out, ...

  /// Ranks per node if the log names its hosts: the maximum over the nodes.
  int ranks_per_node = 0;
};

/// nccl-tests' two bandwidths, in GB/s (1e9 bytes per second): bytes / time, and that times
/// 2(n-1)/n, the share of the bytes that every rank must send. The bus bandwidth is comparable to a
/// link's rate, whatever the number of ranks.
double algorithm_bandwidth(const BenchRow& row);
double bus_bandwidth(const BenchRow& row, int ranks);
/// Mean of the bus bandwidth over all rows; 0 for none.
double average_bus_bandwidth(const BenchTable& table);
/// Number of wrong elements over all rows.
std::int64_t wrong_elements(const BenchTable& table);

/// nccl-tests' name of a dtype ("float" for "float32") and the inverse, which accepts both
/// spellings.
std::string bench_type_name(std::string_view dtype);
/// Element size in bytes of a type, by its name in benchmark logs; 0: unknown type.
std::size_t bench_type_size(std::string_view name);

// The table in nccl-tests' format, with only the in-place columns (DDP reduces its buckets in
// place). One function per line, because lines are printed as they are measured.
std::string bench_heading(const std::string& program, int ranks);
std::string bench_line(const BenchRow& row, int ranks);
std::string bench_footer(const BenchTable& table);

/// Parses a size in nccl-tests' format ("8", "32K", "128M", "1G", powers of 1024) or gradsync's
/// ("25MiB", "10MB"). Throws Error(kUsage) for anything else.
Bytes parse_bench_size(const std::string& text);

/// The JSON of nccl-tests' -J, as far as it applies: config, results[], out_of_bounds,
/// average_bus_bandwidth. Times are in microseconds.
nlohmann::ordered_json to_json(const BenchTable& table);
nlohmann::ordered_json to_json(const BenchRow& row, int ranks);

}  // namespace gradsync
