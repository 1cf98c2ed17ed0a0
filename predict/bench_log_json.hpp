#pragma once

#include <string>

#include "gradsync/predict/bench_log_table.hpp"

namespace gradsync {

/// The run in the JSON of nccl-tests' -J or of `gradsync bench --json`. A truncated file yields its
/// complete rows. Throws ConfigError, naming `name`, for other JSON.
LoggedRun read_log_json(const std::string& text, const std::string& name);

}  // namespace gradsync
