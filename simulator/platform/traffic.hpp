#pragma once

#include <cstdint>
#include <vector>

#include "gradsync/testbed/scenario/imperfection_spec.hpp"

namespace gradsync {

/// A flow of background traffic, with all random choices made.
struct TrafficFlow {
  std::int64_t from = 0;  ///< node
  std::int64_t to = 0;
  BytesPerSecond rate;  ///< 0: unlimited
  Seconds on{0};        ///< of every period, starting at `begin`
  Seconds period{0};    ///< 0: always on
  Seconds begin{0};
};

/// Draws the traffic between `nodes` nodes. Depends only on the spec and its seed, so it is equal
/// on every machine.
std::vector<TrafficFlow> draw_traffic(const ImperfectionSpec& spec, std::int64_t nodes);

}  // namespace gradsync
