#include "gradsync/testbed/faults/rank_faults.hpp"

#include <algorithm>
#include <iterator>

namespace gradsync {

RankFaults::RankFaults(const std::vector<FaultSpec>& faults, int rank) {
  std::copy_if(faults.begin(), faults.end(), std::back_inserter(faults_),
               [&](const FaultSpec& fault) { return concerns(fault, rank); });
}

SamplerSpec RankFaults::sampler(SamplerSpec spec) const {
  if (const auto* fault = find<SamplerFault>()) {
    spec.seed = fault->seed.value_or(spec.seed);
    spec.set_epoch = fault->set_epoch.value_or(spec.set_epoch);
  }
  return spec;
}

int RankFaults::sampler_rank(int rank) const {
  const auto* fault = find<SamplerFault>();
  return fault != nullptr && fault->shard_of ? static_cast<int>(*fault->shard_of) : rank;
}

std::int64_t RankFaults::first_step() const {
  const auto* fault = find<ResumeFault>();
  return fault != nullptr ? fault->to_step : 0;
}

double RankFaults::compute_factor() const {
  const auto* fault = find<SlowFault>();
  return fault != nullptr ? fault->factor : 1;
}

}  // namespace gradsync
