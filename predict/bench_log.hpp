#pragma once

#include <optional>
#include <string>

#include "gradsync/predict/bench_table.hpp"

namespace gradsync {

/// The user's hints about a log.
struct BenchLogOptions {
  std::optional<int> ranks;  ///< overrides the log's
  std::optional<int> table;  ///< selects one of several, from 1
  bool in_place = false;     ///< published tables quote the out-of-place columns
};

/// Reads an all-reduce table from the output of nccl-tests' or RCCL-tests' all_reduce_perf (text of
/// any version, including additions by launchers and terminals, or the JSON of -J) or of `gradsync
/// bench allreduce` (text or JSON).
///
/// Ranks, hosts and devices are taken from the log if it lists them; otherwise the number of ranks
/// is derived from busbw / algbw if the digits allow it. Runs with equal ranks, nodes, type and
/// operation are merged: each size gets the median of its times. The table's notes say what was
/// left out, truncated or derived.
///
/// Throws ConfigError naming `name` (the file) and the line for a table that cannot be parsed or is
/// of another collective. Throws Error(kUsage) if the number of ranks is unknown, or if the log has
/// several all-reduce tables and `table` does not select one.
BenchTable read_bench_log(const std::string& text, const std::string& name,
                          const BenchLogOptions& options = {});

}  // namespace gradsync
