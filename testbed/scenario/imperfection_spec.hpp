#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gradsync/core/units.hpp"

namespace gradsync {

/// What keeps a cluster from being ideal without breaking anything: ranks that compute at different
/// speeds, loaders that stall, links that are slow, flap or are shared. Everything that is drawn
/// comes from `seed` by CounterRandom, so that equal seeds give equal runs on every machine.
///
/// What is about a rank happens in the rank itself, so on every backend; what is about the network
/// exists in the simulator alone (engine/train/imperfection_checks.cpp has the table).
struct ImperfectionSpec {
  enum class Distribution { kLognormal, kNormal };

  /// Ranks that compute `factor` times as long: the fault `slow`, by the same clock.
  struct SlowRanks {
    std::vector<std::int64_t> ranks;  ///< empty: all
    double factor = 1;
    bool operator==(const SlowRanks&) const = default;
  };
  /// Ranks that start `duration` after the others: the fault `rendezvous`, by the same code.
  struct LateRanks {
    std::vector<std::int64_t> ranks;
    Seconds duration{0};
    bool operator==(const LateRanks&) const = default;
  };
  /// In every `every`-th step, with `probability`, the batch comes `duration` late: a fault `delay`
  /// at `data` again and again.
  struct LoaderStall {
    std::vector<std::int64_t> ranks;
    std::int64_t every = 1;
    double probability = 1;
    Seconds duration{0};
    bool operator==(const LoaderStall&) const = default;
  };

  /// A cable of the simulated network: slow (the fault `link`, by the same code), or down for the
  /// last `down` of every `period`.
  struct Link {
    std::string link;                  ///< by name, as results print it; or
    std::optional<std::int64_t> node;  ///< all adapters of a node
    double factor = 1;                 ///< on its bandwidth, in both directions
    Seconds latency{0};                ///< more than it has
    Seconds down{0};
    Seconds period{0};  ///< 0: it is never down
    bool operator==(const Link&) const = default;
  };
  /// Flows of others from node to node, which share the cables with the job's.
  struct Traffic {
    std::int64_t flows = 1;
    std::optional<std::int64_t> from, to;  ///< nodes; drawn for each flow where they are not given
    std::optional<BytesPerSecond> rate;    ///< of each flow; unset: what the cables give
    Seconds on{0};                         ///< of every `period`, from an instant that is drawn
    Seconds period{0};                     ///< 0: always on
    bool operator==(const Traffic&) const = default;
  };

  std::uint64_t seed = 0;
  double compute_spread = 0;  ///< sigma of each rank's own factor, drawn once
  double compute_jitter = 0;  ///< sigma of a factor that is drawn for each rank and step
  Distribution distribution = Distribution::kLognormal;  ///< of both
  double while_communicating = 1;  ///< of compute, as long as the rank has a collective under way
  std::vector<SlowRanks> slow_ranks;
  std::vector<LateRanks> late_ranks;
  std::vector<LoaderStall> loader_stalls;
  std::vector<Link> links;
  std::vector<Traffic> traffic;
  bool operator==(const ImperfectionSpec&) const = default;
};

}  // namespace gradsync
