#pragma once

#include <functional>

#include <nlohmann/json_fwd.hpp>

#include "gradsync/predict/bench_table.hpp"
#include "gradsync/tensor/dtype.hpp"
#include "gradsync/testbed/rank/rank_main.hpp"

namespace gradsync {

/// What is measured; the names and defaults are nccl-tests'.
struct AllreduceBench {
  Bytes min_bytes = 8;
  Bytes max_bytes = 128 * 1024 * 1024;
  double factor = 2;         ///< from one size to the next
  std::vector<Bytes> sizes;  ///< these in place of the three above, where there are any
  std::int64_t warmup = 5;
  std::int64_t iterations = 20;
  DType dtype = DType::kFloat32;
  bool check = true;  ///< compare a result with the exact sum, element by element
};

/// The sizes, each a whole number of elements.
std::vector<Bytes> bench_sizes(const AllreduceBench& bench);

/// The part of one rank, on any process group: all-reduces each size in place, `warmup` times and,
/// after a barrier, `iterations` times, one after the other. The times of all ranks are then
/// brought together; `on_row` is called on rank 0 for each size as it is done.
///
/// The check fills the tensor with small whole numbers that depend on rank and index, whose sum is
/// exact in every order and dtype, and compares all elements on every rank. A size is not checked
/// (`wrong` is absent) where the dtype cannot count as far as the number of ranks, or where the
/// ranks share a process (the simulator) and the tensors of all of them exceed 256 MiB.
///
/// Timed tensors have no bytes where runtime.device is the meta device.
///
/// `before_each`, where there is one, is called on every rank before each of these all-reduces
/// (warm-up included, the check's not) with the number of those before it, over all sizes. A rank
/// that sleeps there is late, and its lateness is part of the time.
///
/// Leaves the report finished and the group shut down; an error of the group passes through.
void run_allreduce_bench(const AllreduceBench& bench, const RankRuntime& runtime,
                         RankReport& report, const std::function<void(const BenchRow&)>& on_row,
                         const std::function<void(std::int64_t)>& before_each = {});

nlohmann::ordered_json to_json(const AllreduceBench& bench);
AllreduceBench allreduce_bench_from_json(const nlohmann::ordered_json& json);

}  // namespace gradsync
