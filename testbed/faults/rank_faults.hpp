#pragma once

#include <cstdint>
#include <vector>

#include "gradsync/testbed/scenario/fault_spec.hpp"
#include "gradsync/testbed/scenario/scenario.hpp"

namespace gradsync {

/// The faults of one rank, in scenario order. Without faults every query is a lookup in an empty
/// list. Immutable.
class RankFaults {
 public:
  RankFaults(const std::vector<FaultSpec>& faults, int rank);

  bool empty() const noexcept { return faults_.empty(); }
  auto begin() const noexcept { return faults_.begin(); }
  auto end() const noexcept { return faults_.end(); }

  /// The first fault of this kind that is active in `step`; null if none is.
  template <class Kind>
  const Kind* find(std::int64_t step = 0) const {
    for (const FaultSpec& fault : faults_) {
      const Kind* kind = fault.as<Kind>();
      if (kind != nullptr && covers(*kind, step)) return kind;
    }
    return nullptr;
  }

  // Applies the rank's faults to its configuration.
  SamplerSpec sampler(SamplerSpec spec) const;
  int sampler_rank(int rank) const;
  std::int64_t first_step() const;
  /// The factor on the rank's compute time.
  double compute_factor() const;

 private:
  std::vector<FaultSpec> faults_;
};

}  // namespace gradsync
