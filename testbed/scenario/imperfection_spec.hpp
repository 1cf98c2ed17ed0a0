#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gradsync/core/units.hpp"

namespace gradsync {

/// Imperfections that make a cluster slower or uneven without breaking it: ranks with different
/// speeds, stalling loaders, and links that are slow, flap or are shared. Every random draw uses
/// CounterRandom with `seed`, so equal seeds give equal runs on every machine.
///
/// Imperfections of a rank act in the rank itself, so they work on every backend; those of the
/// network exist only in the simulator (testbed/scenario/imperfection_checks.cpp has the table).
struct ImperfectionSpec {
  enum class Distribution { kLognormal, kNormal };

  /// Ranks whose compute takes `factor` times as long; implemented like the fault `slow`.
  struct SlowRanks {
    std::vector<std::int64_t> ranks;  ///< empty: all
    double factor = 1;
    bool operator==(const SlowRanks&) const = default;
  };
  /// Ranks that start `duration` after the others; implemented like the fault `rendezvous`.
  struct LateRanks {
    std::vector<std::int64_t> ranks;
    Seconds duration{0};
    bool operator==(const LateRanks&) const = default;
  };
  /// In every `every`-th step, with `probability`, the batch arrives `duration` late, like a
  /// repeated fault `delay` at `data`.
  struct LoaderStall {
    std::vector<std::int64_t> ranks;
    std::int64_t every = 1;
    double probability = 1;
    Seconds duration{0};
    bool operator==(const LoaderStall&) const = default;
  };

  /// A cable of the simulated network: slow (implemented like the fault `link`), or down for the
  /// last `down` of every `period`.
  struct Link {
    std::string link;                  ///< by name, as printed in results; or
    std::optional<std::int64_t> node;  ///< all adapters of a node
    double factor = 1;                 ///< of its bandwidth, in both directions
    Seconds latency{0};                ///< added to its own
    Seconds down{0};
    Seconds period{0};  ///< 0: never down
    bool operator==(const Link&) const = default;
  };
  /// Background flows between nodes, which share the cables with the job.
  struct Traffic {
    std::int64_t flows = 1;
    std::optional<std::int64_t> from, to;  ///< nodes; drawn for each flow if unset
    std::optional<BytesPerSecond> rate;    ///< per flow; unset: limited only by the cables
    Seconds on{0};                         ///< of every `period`, starting at a random time
    Seconds period{0};                     ///< 0: always on
    bool operator==(const Traffic&) const = default;
  };

  std::uint64_t seed = 0;
  double compute_spread = 0;  ///< sigma of each rank's factor, drawn once
  double compute_jitter = 0;  ///< sigma of a factor drawn per rank and step
  Distribution distribution = Distribution::kLognormal;  ///< of both
  double while_communicating = 1;  ///< compute factor while a collective of the rank is in flight
  std::vector<SlowRanks> slow_ranks;
  std::vector<LateRanks> late_ranks;
  std::vector<LoaderStall> loader_stalls;
  std::vector<Link> links;
  std::vector<Traffic> traffic;
  bool operator==(const ImperfectionSpec&) const = default;
};

}  // namespace gradsync
