#include "gradsync/testbed/faults/clean_up_fault.hpp"

namespace gradsync {

void clean_up(const std::vector<FaultSpec>& faults, int rank, Clock& clock,
              const std::function<void()>& block) {
  for (const FaultSpec& fault : faults) {
    if (!concerns(fault, rank)) continue;
    const auto* stall = fault.as<StallFault>();
    const auto* delay = fault.as<DelayFault>();
    if (stall != nullptr && stall->at == FaultPoint::kCleanUp) block();
    if (delay != nullptr && delay->at == FaultPoint::kCleanUp) clock.sleep(delay->duration);
  }
}

}  // namespace gradsync
