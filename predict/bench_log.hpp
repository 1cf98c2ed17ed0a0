#pragma once

#include <optional>
#include <string>

#include "gradsync/predict/bench_table.hpp"

namespace gradsync {

/// What a person says about a log.
struct BenchLogOptions {
  std::optional<int> ranks;  ///< overrides the log's
  std::optional<int> table;  ///< which of several, from 1
  bool in_place = false;     ///< the in-place columns; published tables quote the other ones
};

/// Reads an all-reduce table from the output of nccl-tests' or RCCL-tests' all_reduce_perf (text of
/// any version, with whatever launchers and terminals put into it, or the JSON of -J) or of
/// `gradsync bench allreduce` (text or JSON).
///
/// Ranks, hosts and devices are the log's, where it lists them; ranks are otherwise worked out from
/// busbw / algbw, where the digits allow it. Runs of equal ranks, nodes, type and operation are
/// taken together: each size has the median of its times. What was left out, cut off or worked out
/// is in the table's notes.
///
/// Throws ConfigError naming `name` (the file) and the line for a table that cannot be understood
/// or is of another collective, Error(kUsage) where the number of ranks is unknown, and where the
/// log has several tables of all-reduces and `table` does not choose.
BenchTable read_bench_log(const std::string& text, const std::string& name,
                          const BenchLogOptions& options = {});

}  // namespace gradsync
