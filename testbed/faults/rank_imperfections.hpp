#pragma once

#include <cstdint>

#include "gradsync/core/units.hpp"
#include "gradsync/testbed/scenario/imperfection_spec.hpp"

namespace gradsync {

/// The imperfections of one rank as numbers, which depend only on seed, rank and step.
class RankImperfections {
 public:
  /// `spec` must outlive it.
  RankImperfections(const ImperfectionSpec& spec, int rank);

  /// The factor on the rank's compute time in a step: the rank's own factor times the step's.
  /// Exactly 1 if nothing is drawn and no rank is slow.
  double compute_factor(std::int64_t step) const;
  /// The delay of the step's first batch.
  Seconds loader_stall(std::int64_t step) const;

 private:
  const ImperfectionSpec* spec_;
  int rank_;
  double own_factor_;
};

/// How long after the others `rank` starts.
Seconds start_delay(const ImperfectionSpec& spec, int rank);

/// Whether the imperfections distinguish ranks, so that one cannot be simulated on behalf of all.
bool ranks_differ(const ImperfectionSpec& spec);

}  // namespace gradsync
