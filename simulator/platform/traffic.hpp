#pragma once

#include <cstdint>
#include <vector>

#include "gradsync/testbed/scenario/imperfection_spec.hpp"

namespace gradsync {

/// A flow of background traffic, with all that is drawn.
struct TrafficFlow {
  std::int64_t from = 0;  ///< node
  std::int64_t to = 0;
  BytesPerSecond rate;  ///< 0: without limit
  Seconds on{0};        ///< of every period, from `begin` on
  Seconds period{0};    ///< 0: always
  Seconds begin{0};
};

/// The traffic between `nodes` nodes. A function of the seed: equal on every machine.
std::vector<TrafficFlow> draw_traffic(const ImperfectionSpec& spec, std::int64_t nodes);

}  // namespace gradsync
