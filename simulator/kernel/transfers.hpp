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
/// A flow that has every link of its route to itself needs no solver: it takes bytes / bandwidth of
/// the narrowest link, as SimGrid's CM02 would compute. When another flow enters one of its links,
/// the remaining bytes are handed over to SimGrid, which shares the links. Flows that start on
/// shared links, or on links with varying bandwidth (LinkLoads::always_solve), are SimGrid's from
/// the start. A ring on a switch, where messages never contend, thus hardly needs the solver, and
/// contended messages take the same time as with it: tests/sim/transfers_test.cpp compares both.
class Transfers {
 public:
  using Host = simgrid_compat::s4u::Host;

  /// `solve_all`: SimGrid solves every flow; for platform files that define the behavior of their
  /// links, and for comparisons.
  Transfers(SimEngine& engine, LinkLoads& loads, bool solve_all)
      : engine_(&engine), loads_(&loads), solve_all_(solve_all) {}

  /// Starts a flow of `bytes` > 0 on an open route, and calls `arrived` a `latency` after its last
  /// byte has left. `way` must outlive the flow.
  void start(const LinkLoads::Way& way, const std::pair<Host*, Host*>& ends, double bytes,
             Seconds latency, Continuation arrived);

  /// Number of flows that SimGrid solved, from the start or after a handover.
  std::int64_t solved() const noexcept { return solved_; }

 private:
  struct Flow {
    const LinkLoads::Way* way = nullptr;
    std::pair<Host*, Host*> ends;
    double bytes = 0;
    double bytes_per_second = 0;  ///< without contention
    Seconds begin{0}, end{0};     ///< without contention
    Seconds latency{0};
    Continuation arrived;
    int calls = 0;  ///< pending calls of `left`; two for a flow handed over to SimGrid
    bool is_solved = false;
    bool is_over = false;  ///< its links are free again
  };
  struct Use {
    int flows = 0;
    Flow* alone = nullptr;
  };
  Flow& new_flow();
  /// Enters the flow on its route; hands over flows that were alone on a part of it. Returns
  /// whether the route is otherwise empty.
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
