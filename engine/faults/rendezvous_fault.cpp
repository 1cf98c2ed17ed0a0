#include "engine/faults/rendezvous_fault.hpp"

namespace gradsync {

void come_to_rendezvous(const std::vector<FaultSpec>& faults, int rank, Clock& clock,
                        const std::function<void()>& stall) {
  for (const FaultSpec& fault : faults) {
    if (fault.kind != FaultKind::kRendezvous || !concerns(fault, rank)) continue;
    if (fault.duration <= Seconds{0}) {
      stall();
    } else {
      clock.advance(fault.duration);
    }
  }
}

}  // namespace gradsync
