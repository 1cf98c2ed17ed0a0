#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gradsync/core/units.hpp"
#include "gradsync/testbed/diagnosis/digest.hpp"

namespace gradsync::diagnosis {

/// The cost of ranks that are late to gradient reductions, and which ranks those are.
///
/// Arrivals (stragglers.hpp) say who came last, but lateness does not always cost its full length:
/// a bucket that has to wait for the network anyway may be late for free. So each step is computed
/// twice. Its reductions run in sequence: each starts when its last rank has arrived and the
/// previous one has ended, and takes as long as it did. "Without the lateness", every reduction is
/// entered at the median arrival. The difference between the two end times is what the step would
/// have saved. The blamed rank is the one that was last to the reduction after which all others
/// followed without a gap, because everything later waited for it.
///
/// A network-bound step saves nothing, however late a rank is; nor does a step whose ranks are
/// equally slow, because the median is then slow too. Timestamps of different ranks are compared,
/// so their clocks must be synchronized.
struct Blame {
  struct Rank {
    int rank = 0;
    std::int64_t steps = 0;  ///< number of steps in which it was to blame
    double share = 0;        ///< fraction of the total cost of lateness
    double cost = 0;         ///< its part of Blame::cost
    Seconds lateness{0};     ///< relative to the median arrival; mean over those steps
    std::string phase;       ///< phase that caused most of it
  };
  /// Lateness to the first collective of the run.
  struct Start {
    int rank = 0;
    Seconds late{0};  ///< relative to the median arrival
  };
  /// The cost of a known network fault: reductions that took longer than comparable ones during the
  /// fault, although all ranks were present.
  struct Network {
    std::string what;          ///< "the cables of node 1 were down from 1s to 3s"
    std::int64_t steps = 0;    ///< number of steps with such a reduction
    Seconds lost{0};           ///< total, relative to comparable reductions of other steps
    std::int64_t longest = 0;  ///< the step that lost most
    Seconds longest_lost{0};
  };
  std::int64_t steps = 0;        ///< number of steady steps whose reductions are all known
  Seconds saved{0};              ///< per step, mean
  double cost = 0;               ///< lateness / duration of the steps without it
  std::vector<Rank> ranks;       ///< most expensive first
  std::optional<Start> start;    ///< absent if all started together
  std::vector<Network> network;  ///< in the order of the conditions; only those with a cost
};

Blame find_blame(const Digest& digest);

/// "12.3% of a step (13.8 ms): rank 3 for 92% of it, behind in backward"; empty if lateness costs
/// less than half a percent.
std::string describe(const Blame& blame);
/// "cost 2 s in step 21: the cables of node 1 were down from 20ms to 2.02s"
std::string describe(const Blame::Network& network);

}  // namespace gradsync::diagnosis
