#pragma once

#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "gradsync/simulator/kernel/link_loads.hpp"
#include "gradsync/simulator/kernel/sim_engine.hpp"

namespace gradsync {

/// The flows of the job. Kernel context only.
///
/// A flow that has every link of its way to itself needs no solver: it takes bytes / bandwidth of
/// the narrowest link, which is what SimGrid's CM02 would find. When another comes to one of its
/// links, what is left of it goes to SimGrid, which shares the links among them; the flows that
/// share, and those on links whose bandwidth changes (LinkLoads::always_solve), are SimGrid's from
/// the beginning. A ring on a switch, where no two messages meet, is thus as good as free of it,
/// and a message under contention takes as long as it ever did: tests/sim/transfers_test.cpp holds
/// the two against each other.
class Transfers {
 public:
  using Host = simgrid_compat::s4u::Host;

  /// `solve_all`: every flow is SimGrid's; for platforms that say themselves how their links
  /// behave, and for comparisons.
  Transfers(SimEngine& engine, LinkLoads& loads, bool solve_all)
      : engine_(&engine), loads_(&loads), solve_all_(solve_all) {}

  /// Starts a flow of `bytes` > 0 on a way that is open, and calls `arrived` a `latency` after its
  /// last byte has left. `way` has to outlive it.
  void start(const LinkLoads::Way& way, const std::pair<Host*, Host*>& ends, double bytes,
             Seconds latency, Continuation arrived);

  /// Flows that were SimGrid's, from the beginning or at the end.
  std::int64_t solved() const noexcept { return solved_; }

 private:
  struct Flow {
    const LinkLoads::Way* way = nullptr;
    std::pair<Host*, Host*> ends;
    double bytes = 0;
    double bytes_per_second = 0;  ///< alone
    Seconds begin{0}, end{0};     ///< alone
    Seconds latency{0};
    Continuation arrived;
    int calls = 0;  ///< of `left` that are pending; a flow handed over to SimGrid has two
    bool is_solved = false;
    bool is_over = false;  ///< its links are free again
  };
  struct Use {
    int flows = 0;
    Flow* alone = nullptr;
  };
  Flow& new_flow();
  /// Whether nobody else is on the way; who was alone on a part of it no longer is.
  bool enter(const LinkLoads::Way& way);
  void run_alone(Flow& flow);
  void solve(Flow& flow, double bytes);
  void hand_over(Flow& flow);
  void left(Flow& flow, bool solved);
  void leave(Flow& flow);

  SimEngine* engine_;
  LinkLoads* loads_;
  bool solve_all_;
  std::int64_t solved_ = 0;
  std::vector<Use> uses_;  // by link
  std::deque<Flow> flows_;
  std::vector<Flow*> free_;
};

}  // namespace gradsync
