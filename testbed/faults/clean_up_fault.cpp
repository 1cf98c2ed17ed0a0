#include "gradsync/testbed/faults/clean_up_fault.hpp"

namespace gradsync {

void clean_up(const std::vector<FaultSpec>& faults, int rank, Clock& clock,
              const std::function<void()>& block) {
  for (const FaultSpec& fault : faults) {
    if (fault.at != FaultPoint::kCleanUp || !concerns(fault, rank)) continue;
    if (fault.kind == FaultKind::kStall) {
      block();
    } else {
      clock.sleep(fault.duration);
    }
  }
}

}  // namespace gradsync
