#pragma once

#include "gradsync/backends/rank/rank_process.hpp"

namespace gradsync {

/// Runs a complete rank on Gloo, on the CPU (see run_rank_process).
RankProcessResult run_gloo_rank(const Scenario& scenario, const RankEnvironment& environment,
                                const RankProcessOptions& options);

}  // namespace gradsync
