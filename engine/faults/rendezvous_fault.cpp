#include "engine/faults/rendezvous_fault.hpp"

#include "engine/faults/rank_imperfections.hpp"

namespace gradsync {

void come_to_rendezvous(const std::vector<FaultSpec>& faults, const ImperfectionSpec& imperfections,
                        int rank, Clock& clock, const std::function<void()>& stall) {
  if (const Seconds late = start_delay(imperfections, rank); late > Seconds{0}) clock.sleep(late);
  for (const FaultSpec& fault : faults) {
    if (fault.kind != FaultKind::kRendezvous || !concerns(fault, rank)) continue;
    if (fault.duration <= Seconds{0}) {
      stall();
    } else {
      clock.sleep(fault.duration);
    }
  }
}

}  // namespace gradsync
