#pragma once

#include <functional>
#include <list>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gradsync/core/units.hpp"
#include "gradsync/simulator/kernel/simgrid_compat.hpp"

namespace gradsync {

/// A callback to run later in kernel context. Layers pass it on unchanged: if each wrapped it in
/// its own closure, every message would cost an allocation per layer.
struct Continuation {
  std::function<void()> run;
  std::shared_ptr<const void> keeps = {};  ///< kept alive until the call
  const bool* unless = nullptr;            ///< if set and true, the call is skipped

  bool is_wanted() const { return unless == nullptr || !*unless; }
  void operator()() const {
    if (is_wanted()) run();
  }
};

/// SimGrid's engine for one simulation, reduced to what a job of ranks needs: actors, sleeping,
/// timed events, and flows from host to host.
///
/// There are two contexts. An *actor* runs a rank and may wait. The *kernel* runs events, ends of
/// flows and code that an actor passes to `in_kernel`, one after another and never interleaved. All
/// state shared by ranks (process groups, collectives) is used in the kernel only and therefore
/// needs no lock.
///
/// SimGrid allows one engine at a time per process, so a process may run any number of simulations
/// in sequence. The first one fixes the configuration. SimGrid's clock is never reset; `now()`
/// counts from the start of this simulation. In later simulations of a process, times may differ in
/// the last digits from those of a fresh process.
class SimEngine {
 public:
  /// CM02 without the TCP window (gamma 0), cross traffic, or LV08's factors: a flow takes latency
  /// + bytes / bandwidth, and flows on a link share it. Throws Error(kInternal) if another
  /// SimEngine exists.
  SimEngine();
  ~SimEngine();
  SimEngine(const SimEngine&) = delete;
  SimEngine& operator=(const SimEngine&) = delete;

  simgrid_compat::s4u::Engine& simgrid() noexcept { return *engine_; }
  /// Whether this is the process's first simulation: SimGrid 3.32 crashes if a later one reads a
  /// platform file.
  bool is_first() const noexcept { return is_first_; }

  /// Simulated time since the start of this simulation.
  Seconds now() const;

  void start_actor(const std::string& name, simgrid_compat::s4u::Host* host,
                   std::size_t stack_bytes, const std::function<void()>& code);

  /// Runs the simulation until nothing is left to happen. If actors remain that wait for something
  /// that can never happen, calls `on_deadlock` once (in the kernel, at that time), and then
  /// unwinds their stacks with an exception that is not a std::exception.
  void run(const std::function<void()>& on_deadlock);

  /// Runs `code` in the kernel and returns when it has finished; its exceptions propagate.
  template <typename Code>
  void in_kernel(Code&& code) {
    simgrid_compat::in_kernel(std::forward<Code>(code));
  }

  /// Puts the calling actor to sleep.
  void sleep(Seconds duration);
  /// Same, but wakes up early when `wakeup` is released; returns whether it was.
  bool sleep_unless(simgrid_compat::s4u::Semaphore& wakeup, Seconds duration);
  /// In the kernel: calls `event` after `delay`. Events at the same time run in an order that is
  /// deterministic but not the order of the calls.
  void after(Seconds delay, Continuation event);
  /// In the kernel: starts a flow of `bytes` > 0 and calls `left` when the last byte has left.
  /// Nothing arrives from or at a host that is off.
  void transfer(simgrid_compat::s4u::Host* from, simgrid_compat::s4u::Host* to, double bytes,
                Continuation left);

  /// Before the simulation runs: registers callbacks, run in the kernel, for hosts and links that
  /// go on or off. Actors on such a host have ended, and flows over such a link are lost.
  void on_outage(std::function<void(const simgrid_compat::s4u::Host&)> host,
                 std::function<void(const simgrid_compat::s4u::Link&)> link);

  /// Activity beside the job. It does not keep the simulation alive: when nothing else is left to
  /// happen (the job has ended or is deadlocked) it is dropped, so a hang is still detected when it
  /// happens. Use it before the simulation runs, or in the kernel.
  class BackgroundFlow;
  void in_background(Seconds delay, std::function<void()> event);
  /// A flow without end. `stopped` receives the number of bytes that had left when it was stopped
  /// or dropped.
  std::shared_ptr<BackgroundFlow> start_background_flow(simgrid_compat::s4u::Host* from,
                                                        simgrid_compat::s4u::Host* to,
                                                        std::function<void(double)> stopped);
  void stop_background_flow(std::shared_ptr<BackgroundFlow> flow);

  /// In the kernel: calls `event` at `date`, unless nothing else is left to happen before: a
  /// watchdog must not hide a deadlock by being a pending event. One at a time; a new one replaces
  /// the old one.
  void set_watchdog(Seconds date, std::function<void()> event);

 private:
  struct Flow {
    simgrid::s4u::CommPtr comm;
    Continuation left;
    std::list<Flow>::iterator self;
  };
  /// Consecutive calls of `after` for the same date share one SimGrid timer, e.g. those for the
  /// messages of a step.
  struct Instant {
    double date;  // on SimGrid's clock
    std::vector<Continuation> events;
  };
  class Pending;

  static void flow_ended(const simgrid_compat::s4u::Activity& activity);
  void tell_ends();
  void run_instant(const Instant& instant);
  static void deadlock();
  void begin_pending();
  void end_pending();
  void arm_watchdog();
  void look_for_end();
  void drop_background();

  simgrid_compat::s4u::Engine* engine_;
  bool is_first_ = false;
  double origin_;
  std::function<void()> on_deadlock_;
  std::function<void(const simgrid_compat::s4u::Host&)> on_host_;
  std::function<void(const simgrid_compat::s4u::Link&)> on_link_;
  std::list<Flow> flows_;
  std::list<Flow> ended_flows_;  // by end time; their callbacks are pending
  std::size_t ends_to_tell_ = 0;
  Instant* last_instant_ = nullptr;  // of the last `after` call, while it is pending
  std::size_t pending_ = 0;          // sleeping actors, events and flows
  double watchdog_date_ = -1;        // on SimGrid's clock; negative: none
  std::function<void()> watchdog_event_;
  bool has_background_ = false;
  bool is_looking_for_end_ = false;
  std::set<simgrid::kernel::timer::Timer*> background_timers_;
  std::set<std::shared_ptr<BackgroundFlow>> background_flows_;
  /// With the dates at which they were stopped; SimGrid releases them later.
  std::list<std::pair<double, std::shared_ptr<BackgroundFlow>>> stopped_flows_;
  simgrid::kernel::timer::Timer* watchdog_timer_ = nullptr;
};

}  // namespace gradsync
