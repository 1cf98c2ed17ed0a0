#pragma once

#include <optional>
#include <string>

#include "gradsync/predict/bench_table.hpp"

namespace gradsync {

/// Reads an all-reduce table from the output of nccl-tests' all_reduce_perf (text of any version,
/// or the JSON of -J) or of `gradsync bench allreduce` (text or JSON).
///
/// Of nccl-tests' two placements the out-of-place one is taken, which is the one that published
/// tables quote. The number of ranks is the log's, where it says it (its "Rank" lines or devices);
/// `ranks` overrides it and is needed where it does not.
///
/// Throws ConfigError naming `name` (the file) and the line for a table that cannot be understood,
/// Error(kUsage) where the number of ranks is unknown.
BenchTable read_bench_log(const std::string& text, const std::string& name,
                          std::optional<int> ranks = {});

}  // namespace gradsync
