#include "gradsync/testbed/faults/rendezvous_fault.hpp"

#include <algorithm>

#include "gradsync/testbed/faults/rank_imperfections.hpp"

namespace gradsync {

void come_to_rendezvous(const std::vector<FaultSpec>& faults, const ImperfectionSpec& imperfections,
                        int rank, Clock& clock, const std::function<void()>& stall) {
  if (const Seconds late = start_delay(imperfections, rank); late > Seconds{0}) clock.sleep(late);
  for (const FaultSpec& fault : faults) {
    const auto* rendezvous = fault.as<RendezvousFault>();
    if (rendezvous == nullptr || !concerns(fault, rank)) continue;
    if (rendezvous->wrong_address) continue;  // it arrives in time
    if (rendezvous->duration <= Seconds{0}) {
      stall();
    } else {
      clock.sleep(rendezvous->duration);
    }
  }
}

std::vector<int> ranks_with_wrong_address(const std::vector<FaultSpec>& faults, int world_size) {
  std::vector<int> ranks;
  for (int rank = 0; rank < world_size; ++rank) {
    const bool wrong = std::any_of(faults.begin(), faults.end(), [&](const FaultSpec& fault) {
      const auto* rendezvous = fault.as<RendezvousFault>();
      return rendezvous != nullptr && rendezvous->wrong_address && concerns(fault, rank);
    });
    if (wrong) ranks.push_back(rank);
  }
  return ranks;
}

}  // namespace gradsync
