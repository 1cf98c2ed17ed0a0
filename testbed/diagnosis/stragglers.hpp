#pragma once

#include <string>
#include <vector>

#include "gradsync/testbed/diagnosis/digest.hpp"

namespace gradsync::diagnosis {

/// The order in which ranks arrive at collectives. Equal durations of backward hide a slow rank,
/// because the others spend the same time waiting for it; the last arrival at a collective reveals
/// it.
struct Arrivals {
  struct Rank {
    int rank = 0;
    std::int64_t last = 0;  ///< number of collectives at which it was last
    Seconds lateness{0};    ///< relative to the median arrival, summed over those
    std::string phase;      ///< phase that took most of that time
    double cost = 0;        ///< lateness / duration of all steps
    double share = 0;       ///< of the lateness of all ranks
    /// Number of collectives at which it was late by at least half of its average lateness, which
    /// separates repeated lateness from a single event; and the step of the first.
    std::int64_t clearly_late = 0;
    std::int64_t first_late_step = 0;
  };
  std::int64_t collectives = 0;  ///< that all ranks have entered
  Seconds skew_mean{0};          ///< from the first to the last arrival
  Seconds skew_max{0};
  std::vector<Rank> ranks;  ///< ranks that were last at least once, most expensive first
};

/// Measures the collectives that reduce gradients.
Arrivals measure_arrivals(const Digest& digest);

/// The phase in which `view` lost most, relative to the median of the others, on its way to the
/// reductions of step `step`: "data", "forward", "backward", or "optimizer" (of the previous step).
/// Empty if the rank has no record of the step.
std::string slow_phase(const Digest& digest, const RankView& view, std::int64_t step);

/// The arrivals as a few lines of text; empty if no collective has all ranks.
std::string describe_arrivals(const std::vector<RankReport>& reports, const Scenario& scenario);

}  // namespace gradsync::diagnosis
