#pragma once

#include <cstdint>
#include <string>

#include "gradsync/testbed/scenario/scenario.hpp"

namespace gradsync {

/// The faults and imperfections of an all-reduce benchmark, in which every all-reduce (warm-up
/// included) is a step:
///
///   faults         link, and rendezvous   as in training
///                  delay                  the rank comes late to the all-reduces of those steps
///   imperfections  links, traffic         as in training
///                  late_ranks             as in training; the barrier before the first size waits
///                  loader_stalls          the rank comes late to the all-reduces of those steps
///
/// A benchmark neither computes nor has a model or a training loop: the rest could change nothing.

/// Throws ConfigError for a fault or an imperfection that a benchmark cannot have.
void check_bench_conditions(const Scenario& scenario);

/// Which of them the scenario has: ", with faults: link; imperfections: links, traffic"; empty
/// where it has none.
std::string describe_bench_conditions(const Scenario& scenario);

/// How long `rank` waits before the all-reduce with this number.
Seconds bench_delay(const Scenario& scenario, int rank, std::int64_t step);

}  // namespace gradsync
