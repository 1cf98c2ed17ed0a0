#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gradsync/core/units.hpp"
#include "gradsync/testbed/diagnosis/digest.hpp"

namespace gradsync::diagnosis {

/// What ranks that come late to the reductions of gradients cost, and which ranks those are.
///
/// Arrivals (stragglers.hpp) say who came last; not every lateness costs its length: a bucket that
/// waits for the network anyway may come late for nothing. So each step is reckoned a second time.
/// Its reductions follow one another: one begins when its last rank has come and the one before has
/// ended, and takes what it took. "Without the lateness" every reduction is entered when the rank
/// in the middle entered it; the difference of the two ends is what the step would have saved. The
/// rank to blame is the one that came last to the reduction from which on they followed without a
/// gap: all that came after waited for it.
///
/// A step that is bound by the network saves nothing, however late a rank is; nor does one whose
/// ranks are equally slow: the middle is slow then. Timestamps of different ranks are compared, so
/// their clocks must be synchronized.
struct Blame {
  struct Rank {
    int rank = 0;
    std::int64_t steps = 0;  ///< in which it was the one
    double share = 0;        ///< of all that lateness cost
    double cost = 0;         ///< its part of Blame::cost
    Seconds lateness{0};     ///< behind the rank in the middle; mean over those steps
    std::string phase;       ///< in which most of it arose
  };
  /// To the first collective of the run.
  struct Start {
    int rank = 0;
    Seconds late{0};  ///< behind the rank in the middle
  };
  /// What the network costs where it is known that it was not as it should be: reductions that
  /// took longer than their like, all ranks being there, while it was so.
  struct Network {
    std::string what;          ///< "the cables of node 1 were down from 1s to 3s"
    std::int64_t steps = 0;    ///< in which there was such a reduction
    Seconds lost{0};           ///< in all of them, over what their like took in other steps
    std::int64_t longest = 0;  ///< the step that lost most
    Seconds longest_lost{0};
  };
  std::int64_t steps = 0;  ///< that were reckoned: steady ones, whose reductions are all known
  Seconds saved{0};        ///< a step, mean
  double cost = 0;  ///< what the steps take more than without the lateness, as a part of that
  std::vector<Rank> ranks;       ///< most costly first
  std::optional<Start> start;    ///< absent where all started together
  std::vector<Network> network;  ///< in the order of the conditions; none where it lost nothing
};

Blame find_blame(const Digest& digest);

/// "12.3% of a step (13.8 ms): rank 3 for 92% of it, behind in backward"; empty where lateness
/// costs less than half a percent.
std::string describe(const Blame& blame);
/// "cost 2 s in step 21: the cables of node 1 were down from 20ms to 2.02s"
std::string describe(const Blame::Network& network);

}  // namespace gradsync::diagnosis
