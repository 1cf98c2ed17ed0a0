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

/// What is called later, in the kernel. Layers hand it on as it is: if each wrapped it in a closure
/// of its own, every message would cost an allocation a layer.
struct Continuation {
  std::function<void()> run;
  std::shared_ptr<const void> keeps = {};  ///< alive until it has been called
  const bool* unless = nullptr;            ///< it is not called once this is true

  bool is_wanted() const { return unless == nullptr || !*unless; }
  void operator()() const {
    if (is_wanted()) run();
  }
};

/// SimGrid's engine for one simulation, reduced to what a job of ranks needs: actors, sleeping,
/// events at an instant, and flows from host to host.
///
/// Two contexts: an *actor* runs a rank and may wait; the *kernel* runs events, ends of flows and
/// what an actor passes to `in_kernel`, one after the other and never interleaved. All that ranks
/// share (process groups, collectives) is touched in the kernel only and therefore needs no lock.
///
/// SimGrid allows one engine at a time in a process, so a process may run any number of
/// simulations, one after the other. Its configuration is fixed by the first. Its clock is never
/// set back; `now()` counts from the start of this simulation, and for a simulation that is not the
/// process's first may differ in the last digits from what a fresh process computes.
class SimEngine {
 public:
  /// CM02 without TCP's window (gamma 0), without cross traffic and without LV08's factors: a flow
  /// takes latency + bytes / bandwidth, and flows on a link share it. Throws Error(kInternal) when
  /// another SimEngine lives.
  SimEngine();
  ~SimEngine();
  SimEngine(const SimEngine&) = delete;
  SimEngine& operator=(const SimEngine&) = delete;

  simgrid_compat::s4u::Engine& simgrid() noexcept { return *engine_; }
  /// Whether this is the process's first simulation: SimGrid 3.32 crashes when a later one reads a
  /// platform file.
  bool is_first() const noexcept { return is_first_; }

  /// Simulated time since this simulation began.
  Seconds now() const;

  void start_actor(const std::string& name, simgrid_compat::s4u::Host* host,
                   std::size_t stack_bytes, const std::function<void()>& code);

  /// Runs the simulation until nothing is left to happen. When actors remain that wait for
  /// something that cannot happen any more, `on_deadlock` is called once (in the kernel, at that
  /// instant); afterwards their stacks are unwound by an exception that is not a std::exception.
  void run(const std::function<void()>& on_deadlock);

  /// Calls `code` in the kernel and returns when it has returned; its exceptions pass through.
  template <typename Code>
  void in_kernel(Code&& code) {
    simgrid_compat::in_kernel(std::forward<Code>(code));
  }

  /// Lets the calling actor sleep.
  void sleep(Seconds duration);
  /// The same, but no longer than until `wakeup` is released; whether it was.
  bool sleep_unless(simgrid_compat::s4u::Semaphore& wakeup, Seconds duration);
  /// Kernel: calls `event` after `delay`. Events of one instant run in an order that is the same on
  /// every run, but not in the order of the calls.
  void after(Seconds delay, Continuation event);
  /// Kernel: starts a flow of `bytes` > 0 and calls `left` when the last byte has. From or to a
  /// host that is off nothing ever arrives.
  void transfer(simgrid_compat::s4u::Host* from, simgrid_compat::s4u::Host* to, double bytes,
                Continuation left);

  /// Before the simulation runs: in the kernel, `host` and `link` are called whenever one goes on
  /// or off. What ran on such a host has ended, and what passed such a link is lost.
  void on_outage(std::function<void(const simgrid_compat::s4u::Host&)> host,
                 std::function<void(const simgrid_compat::s4u::Link&)> link);

  /// What goes on beside the job. It keeps nothing alive: at the instant at which nothing else is
  /// left to happen (the job has ended, or it is in a deadlock) all of it is dropped, so that a
  /// hang is still found when it happens. Before the simulation runs, or in the kernel.
  class BackgroundFlow;
  void in_background(Seconds delay, std::function<void()> event);
  /// A flow without end. `stopped` is told how many bytes have left when it is stopped or dropped.
  std::shared_ptr<BackgroundFlow> start_background_flow(simgrid_compat::s4u::Host* from,
                                                        simgrid_compat::s4u::Host* to,
                                                        std::function<void(double)> stopped);
  void stop_background_flow(std::shared_ptr<BackgroundFlow> flow);

  /// Kernel: `event` is called at `date`, unless nothing else is left to happen before: a watchdog
  /// must not hide a deadlock by being something that is still to come. One at a time; a new one
  /// replaces the old one.
  void set_watchdog(Seconds date, std::function<void()> event);

 private:
  struct Flow {
    simgrid::s4u::CommPtr comm;
    Continuation left;
    std::list<Flow>::iterator self;
  };
  /// Events of one date share a timer of SimGrid's where they are called for one after the other,
  /// as the messages of a step are.
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
  std::list<Flow> ended_flows_;  // in the order of their ends, which are still to be told
  std::size_t ends_to_tell_ = 0;
  Instant* last_instant_ = nullptr;  // that `after` was called for, and which is still to come
  std::size_t pending_ = 0;          // sleeping actors, events and flows
  double watchdog_date_ = -1;        // on SimGrid's clock; negative: none
  std::function<void()> watchdog_event_;
  bool has_background_ = false;
  bool is_looking_for_end_ = false;
  std::set<simgrid::kernel::timer::Timer*> background_timers_;
  std::set<std::shared_ptr<BackgroundFlow>> background_flows_;
  /// With the dates at which they were stopped: SimGrid is done with them at a later one.
  std::list<std::pair<double, std::shared_ptr<BackgroundFlow>>> stopped_flows_;
  simgrid::kernel::timer::Timer* watchdog_timer_ = nullptr;
};

}  // namespace gradsync
