#pragma once

#include <cstdint>

#include "gradsync/core/units.hpp"
#include "gradsync/testbed/scenario/imperfection_spec.hpp"

namespace gradsync {

/// The imperfections of one rank, in numbers: functions of seed, rank and step alone, whatever else
/// happened before.
class RankImperfections {
 public:
  /// `spec` must outlive it.
  RankImperfections(const ImperfectionSpec& spec, int rank);

  /// What the rank's compute time is multiplied by in a step: its own factor, and the step's. 1,
  /// exactly, where nothing is drawn and no rank is slow.
  double compute_factor(std::int64_t step) const;
  /// How much later than it could the step's first batch comes.
  Seconds loader_stall(std::int64_t step) const;

 private:
  const ImperfectionSpec* spec_;
  int rank_;
  double own_factor_;
};

/// How long after the others `rank` starts.
Seconds start_delay(const ImperfectionSpec& spec, int rank);

/// Whether the imperfections tell a rank from another: one cannot stand for all then.
bool ranks_differ(const ImperfectionSpec& spec);

}  // namespace gradsync
