#pragma once

#include <string>
#include <vector>

#include "gradsync/predict/bench_log_table.hpp"

namespace gradsync {

/// The runs in a text that has tables of nccl-tests, of RCCL's port of it or of `gradsync bench`,
/// with anything between and in front: labels of mpirun, srun or kubectl, colours, carriage
/// returns, Markdown, messages of NCCL before a row, behind it or in the middle of it. A row is
/// found by its words, wherever in its line it begins.
std::vector<LoggedRun> read_log_text(const std::string& text);

}  // namespace gradsync
