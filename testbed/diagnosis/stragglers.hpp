#pragma once

#include <string>
#include <vector>

#include "gradsync/testbed/diagnosis/digest.hpp"

namespace gradsync::diagnosis {

/// How the ranks arrive at collectives. Equal times of backward hide a slow rank: the others spend
/// there what they wait for it. Who comes last to a collective does not hide.
struct Arrivals {
  struct Rank {
    int rank = 0;
    std::int64_t last = 0;  ///< collectives to which it came last
    Seconds lateness{0};    ///< behind the rank in the middle, summed over those
    std::string phase;      ///< in which most of that time went
    double cost = 0;        ///< lateness / time of all steps
    double share = 0;       ///< of the lateness of all ranks
    /// Collectives to which it came late by half of what it is late on average, or more: what it
    /// does again and again, not what happened once. And the step of the first.
    std::int64_t clearly_late = 0;
    std::int64_t first_late_step = 0;
  };
  std::int64_t collectives = 0;  ///< that all ranks have entered
  Seconds skew_mean{0};          ///< from the first to the last arrival
  Seconds skew_max{0};
  std::vector<Rank> ranks;  ///< those that were last at least once, most costly first
};

/// Of the collectives that reduce gradients.
Arrivals measure_arrivals(const Digest& digest);

/// The phase in which `view` lost most against the others' middle on its way to the reductions of
/// step `step`: "data", "forward", "backward", or "optimizer", that of the step before. Empty where
/// the rank has no record of the step.
std::string slow_phase(const Digest& digest, const RankView& view, std::int64_t step);

/// The same as a few lines for a person; empty where no collective has all ranks.
std::string describe_arrivals(const std::vector<RankReport>& reports, const Scenario& scenario);

}  // namespace gradsync::diagnosis
