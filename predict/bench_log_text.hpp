#pragma once

#include <string>
#include <vector>

#include "gradsync/predict/bench_log_table.hpp"

namespace gradsync {

/// The runs in a text with tables of nccl-tests, RCCL's port of it or `gradsync bench`, mixed with
/// anything else: labels of mpirun, srun or kubectl, colors, carriage returns, Markdown, and NCCL
/// messages before, after or in the middle of a row. Rows are recognized by their words, wherever
/// they start in a line.
std::vector<LoggedRun> read_log_text(const std::string& text);

}  // namespace gradsync
