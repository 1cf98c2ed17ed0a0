#pragma once

#include <utility>

#include "gradsync/backends/rank/rank_process.hpp"
#include "tools/command/backend_registry.hpp"

namespace gradsync {

/// From the registry's words to those of the real backends, and back.

inline RankProcessOptions process_options(const RankRequest& request) {
  return {.run_directory = request.directory,
          .gather_reports = request.gather_reports,
          .on_step = request.on_step,
          .body = request.body};
}

inline RankResult rank_result(RankProcessResult result) {
  const int exit_status = result.exit_status();
  return {std::move(result.report), std::move(result.all_reports), exit_status};
}

}  // namespace gradsync
