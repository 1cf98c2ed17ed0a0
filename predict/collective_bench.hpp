#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "gradsync/predict/allreduce_bench.hpp"

namespace gradsync {

/// The benchmarks of nccl-tests beside all_reduce_perf, with gradsync's names.
enum class BenchOp { kBroadcast, kReduce, kAllgather, kReduceScatter, kAlltoall, kSendrecv };

/// "broadcast", "reduce", "allgather", "reduce_scatter", "alltoall", "sendrecv"
const char* to_string(BenchOp op) noexcept;
/// Throws Error(kUsage) for anything else.
BenchOp parse_bench_op(const std::string& name);

struct CollectiveBench {
  BenchOp op = BenchOp::kReduceScatter;
  AllreduceBench options;  ///< sizes are those of the larger of input and output, as in nccl-tests
  int root = 0;            ///< of broadcast and reduce
  /// sendrecv: exchange with one call on every rank (an alltoall whose other parts are empty), as
  /// NCCL needs it, whose sends would wait for receives behind them. False: a send and a recv.
  bool grouped = false;
};

/// One way of running an operation at one size.
struct BenchTiming {
  Seconds time{0};                    ///< mean over iterations and ranks
  Seconds median{0};                  ///< over iterations, mean over ranks
  std::optional<std::int64_t> wrong;  ///< elements that are not exact; absent: not checked
};

struct CollectiveRow {
  Bytes bytes = 0;         ///< of the larger of a rank's input and output
  std::int64_t count = 0;  ///< elements that a rank passes, or gets from each rank
  std::string type;
  /// Absent where the operation has only the other: broadcast and reduce are done in place,
  /// alltoall and sendrecv are not.
  std::optional<BenchTiming> out_of_place;
  std::optional<BenchTiming> in_place;
};

/// busbw / algbw, as nccl-tests has it: (n-1)/n for allgather, reduce_scatter and alltoall, else 1.
double bus_factor(BenchOp op, int ranks) noexcept;

/// Runs the benchmark on one rank, on any process group, as run_allreduce_bench does.
void run_collective_bench(const CollectiveBench& bench, const RankRuntime& runtime,
                          RankReport& report,
                          const std::function<void(const CollectiveRow&)>& on_row,
                          const std::function<void(std::int64_t)>& before_each = {});

nlohmann::ordered_json to_json(const CollectiveBench& bench);
CollectiveBench collective_bench_from_json(const nlohmann::ordered_json& json);
nlohmann::ordered_json to_json(const CollectiveRow& row);
CollectiveRow collective_row_from_json(const nlohmann::ordered_json& json);

// nccl-tests' table, with the columns of both ways.
std::string collective_heading(const std::string& program, int ranks);
std::string collective_line(const CollectiveRow& row, const CollectiveBench& bench, int ranks);
std::string collective_footer(const std::vector<CollectiveRow>& rows, BenchOp op, int ranks);
/// Number of wrong elements over all rows and both ways.
std::int64_t wrong_elements(const std::vector<CollectiveRow>& rows);
/// As nccl-tests' -J: results[], out_of_bounds, average_bus_bandwidth.
nlohmann::ordered_json collective_table_json(const std::string& program,
                                             const std::vector<CollectiveRow>& rows,
                                             const CollectiveBench& bench, int ranks);

}  // namespace gradsync
