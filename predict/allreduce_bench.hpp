#pragma once

#include <functional>

#include <nlohmann/json_fwd.hpp>

#include "gradsync/predict/bench_table.hpp"
#include "gradsync/tensor/dtype.hpp"
#include "gradsync/testbed/rank/rank_main.hpp"

namespace gradsync {

/// The parameters of the benchmark, with nccl-tests' names and defaults.
struct AllreduceBench {
  Bytes min_bytes = 8;
  Bytes max_bytes = 128 * 1024 * 1024;
  double factor = 2;         ///< ratio of consecutive sizes
  std::vector<Bytes> sizes;  ///< if not empty, replaces the three above
  std::int64_t warmup = 5;
  std::int64_t iterations = 20;
  DType dtype = DType::kFloat32;
  bool check = true;  ///< compare one result with the exact sum, element by element
};

/// The sizes, each a multiple of the element size.
std::vector<Bytes> bench_sizes(const AllreduceBench& bench);

/// Runs the benchmark on one rank, on any process group: all-reduces each size in place, `warmup`
/// times and, after a barrier, `iterations` times in sequence. Then gathers the times of all ranks;
/// rank 0 calls `on_row` after each size.
///
/// The check fills the tensor with small integers that depend on rank and index, whose sum is exact
/// in every order and dtype, and compares all elements on every rank. A size is not checked
/// (`wrong` is absent) if the dtype cannot represent integers up to the number of ranks, or if the
/// ranks share a process (the simulator) and all their tensors together exceed 256 MiB.
///
/// Timed tensors have no data if runtime.device is the meta device.
///
/// `before_each`, if set, is called on every rank before each of these all-reduces (including
/// warm-up, excluding the check) with the number of all-reduces so far, over all sizes. A rank that
/// sleeps there is late, and the measured time includes it.
///
/// Completes the report and shuts down the group; errors of the group propagate.
void run_allreduce_bench(const AllreduceBench& bench, const RankRuntime& runtime,
                         RankReport& report, const std::function<void(const BenchRow&)>& on_row,
                         const std::function<void(std::int64_t)>& before_each = {});

nlohmann::ordered_json to_json(const AllreduceBench& bench);
AllreduceBench allreduce_bench_from_json(const nlohmann::ordered_json& json);

}  // namespace gradsync
