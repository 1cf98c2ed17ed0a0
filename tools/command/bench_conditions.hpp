#pragma once

#include <cstdint>
#include <string>

#include "gradsync/testbed/scenario/scenario.hpp"

namespace gradsync {

/// The faults and imperfections supported by an all-reduce benchmark, in which every all-reduce
/// (including warm-up) counts as a step:
///
/// faults         link, and rendezvous   as in training
///                  delay                  the rank is late for the all-reduces of those steps
///   imperfections  links, traffic         as in training
///                  late_ranks             as in training; the barrier before the first size waits
///                  loader_stalls          the rank is late for the all-reduces of those steps
///
/// A benchmark has no compute, model or training loop, so the other kinds would have no effect.

/// Throws ConfigError for a fault or an imperfection that a benchmark does not support.
void check_bench_conditions(const Scenario& scenario);

/// Lists those of the scenario: ", with faults: link; imperfections: links, traffic"; empty if
/// none.
std::string describe_bench_conditions(const Scenario& scenario);

/// How long `rank` waits before all-reduce number `step`.
Seconds bench_delay(const Scenario& scenario, int rank, std::int64_t step);

}  // namespace gradsync
