#include "gradsync/simulator/kernel/sim_engine.hpp"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <limits>
#include <vector>

#include "gradsync/core/error.hpp"

#if defined(__has_feature)
#define GRADSYNC_HAS_FEATURE(x) __has_feature(x)
#else
#define GRADSYNC_HAS_FEATURE(x) 0
#endif

namespace gradsync {
namespace {

namespace s4u = simgrid_compat::s4u;
using simgrid::kernel::timer::Timer;

// SimGrid's stack switches confuse a sanitizer that SimGrid was not built with. Actors on threads
// are slow, but every sanitizer understands them.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || \
    GRADSYNC_HAS_FEATURE(address_sanitizer) || GRADSYNC_HAS_FEATURE(thread_sanitizer)
constexpr const char* kContextFactory = "thread";
#else
constexpr const char* kContextFactory = "raw";
#endif

// SimGrid calls back through signals that live as long as the process; they are connected once and
// forward to the current simulation.
SimEngine* current_engine = nullptr;

s4u::Engine* create_engine() {
  // SimGrid handles SIGINT by printing its state and exiting; that decision belongs to the program.
  struct sigaction program_sigint;
  sigaction(SIGINT, nullptr, &program_sigint);
  std::vector<std::string> arguments = {
      "gradsync", std::string("--cfg=contexts/factory:") + kContextFactory,
      "--log=root.thres:error",
      // We report deadlocks ourselves, with names instead of pointers.
      "--log=ker_engine.app:file:/dev/null"};
  std::vector<char*> argv;
  argv.reserve(arguments.size() + 1);
  for (std::string& argument : arguments) argv.push_back(argument.data());
  auto argc = static_cast<int>(argv.size());
  argv.push_back(nullptr);
  auto* engine = new s4u::Engine(&argc, argv.data());
  sigaction(SIGINT, &program_sigint, nullptr);
  return engine;
}

}  // namespace

class SimEngine::BackgroundFlow {
 public:
  // Larger than anything a run can move, and small enough for a double to count single bytes.
  static constexpr double kBytes = 1e15;

  BackgroundFlow(s4u::Host* from, s4u::Host* to, std::function<void(double)> stopped)
      : comm_(s4u::Comm::sendto_init()), stopped_(std::move(stopped)) {
    comm_->set_payload_size(static_cast<std::uint64_t>(kBytes));
    comm_->set_source(from);
    comm_->set_destination(to);
  }
  void stop() {
    stopped_(kBytes - comm_->get_remaining());
    comm_->cancel();
  }

 private:
  s4u::CommPtr comm_;
  std::function<void(double)> stopped_;
};

/// Marks something that will still happen, for the lifetime of the object.
class SimEngine::Pending {
 public:
  explicit Pending(SimEngine& engine) : engine_(engine) { engine_.begin_pending(); }
  ~Pending() { engine_.end_pending(); }
  Pending(const Pending&) = delete;
  Pending& operator=(const Pending&) = delete;

 private:
  SimEngine& engine_;
};

SimEngine::SimEngine() {
  if (current_engine != nullptr) {
    throw Error(ErrorCode::kInternal,
                "a simulation is under way in this process; run the next one when it has ended");
  }
  engine_ = create_engine();
  current_engine = this;
  static const bool configured = [this] {
    is_first_ = true;
    s4u::Engine::set_config("network/model:CM02");
    s4u::Engine::set_config("network/TCP-gamma:0");
    s4u::Engine::set_config("network/crosstraffic:0");
    // SimGrid merges events within this time of each other; its default of one nanosecond is not
    // short compared with a small message on NVLink.
    s4u::Engine::set_config(std::string(simgrid_compat::kTimeResolutionOption) + ":1e-12");
    simgrid_compat::on_flow_completion(&SimEngine::flow_ended);
    s4u::Engine::on_deadlock_cb(&SimEngine::deadlock);
    simgrid_compat::on_outage(
        [](const s4u::Host& host) {
          if (current_engine != nullptr && current_engine->on_host_) current_engine->on_host_(host);
        },
        [](const s4u::Link& link) {
          if (current_engine != nullptr && current_engine->on_link_) current_engine->on_link_(link);
        });
    return true;
  }();
  static_cast<void>(configured);
  origin_ = s4u::Engine::get_clock();
}

SimEngine::~SimEngine() {
  if (watchdog_timer_ != nullptr) watchdog_timer_->remove();
  for (Timer* timer : background_timers_) timer->remove();
  background_flows_.clear();
  stopped_flows_.clear();
  flows_.clear();
  ended_flows_.clear();
  delete engine_;
  current_engine = nullptr;
}

Seconds SimEngine::now() const {
  return Seconds(s4u::Engine::get_clock() - origin_);
}

void SimEngine::start_actor(const std::string& name, s4u::Host* host, std::size_t stack_bytes,
                            const std::function<void()>& code) {
  simgrid_compat::start_actor(name, host, static_cast<unsigned>(stack_bytes), code);
}

void SimEngine::run(const std::function<void()>& on_deadlock) {
  on_deadlock_ = on_deadlock;
  // Engine::run seals the platform of the process's first engine only.
  engine_->get_netzone_root()->seal();
  look_for_end();
  engine_->run();
}

void SimEngine::deadlock() {
  if (current_engine != nullptr && current_engine->on_deadlock_) current_engine->on_deadlock_();
}

void SimEngine::on_outage(std::function<void(const s4u::Host&)> host,
                          std::function<void(const s4u::Link&)> link) {
  on_host_ = std::move(host);
  on_link_ = std::move(link);
}

void SimEngine::sleep(Seconds duration) {
  const Pending pending(*this);
  s4u::this_actor::sleep_for(duration.count());
}

bool SimEngine::sleep_unless(s4u::Semaphore& wakeup, Seconds duration) {
  const Pending pending(*this);
  return !wakeup.acquire_timeout(duration.count());  // true: timed out
}

void SimEngine::after(Seconds delay, Continuation event) {
  begin_pending();
  const double date = s4u::Engine::get_clock() + delay.count();
  if (last_instant_ == nullptr || last_instant_->date != date) {
    auto instant = std::make_unique<Instant>();
    instant->date = date;
    last_instant_ = instant.get();
    Timer::set(date, [this, owned = std::move(instant)] { run_instant(*owned); });
  }
  last_instant_->events.push_back(std::move(event));
}

void SimEngine::run_instant(const Instant& instant) {
  // Events added by these events for the same date run after them.
  if (last_instant_ == &instant) last_instant_ = nullptr;
  for (const Continuation& event : instant.events) {
    event();
    end_pending();
  }
}

void SimEngine::transfer(s4u::Host* from, s4u::Host* to, double bytes, Continuation left) {
  begin_pending();
  flows_.emplace_front();
  Flow& flow = flows_.front();
  flow.self = flows_.begin();
  flow.left = std::move(left);
  flow.comm = s4u::Comm::sendto_init();
  flow.comm->set_data(&flow);
  flow.comm->set_payload_size(static_cast<std::uint64_t>(std::ceil(bytes)));
  flow.comm->set_source(from);
  flow.comm->set_destination(to);  // starts it, now that both ends are known
}

void SimEngine::flow_ended(const s4u::Activity& activity) {
  SimEngine* engine = current_engine;
  Flow* flow = engine == nullptr ? nullptr : activity.get_data<Flow>();
  if (flow == nullptr) return;
  // SimGrid still uses the flow; it is released when the next one starts.
  engine->ended_flows_.splice(engine->ended_flows_.end(), engine->flows_, flow->self);
  // Delay the consequences until all flows of this time have ended. SimGrid searches a list of the
  // flows in flight for each flow that ends, and the list is shorter without the new ones.
  if (++engine->ends_to_tell_ == 1) {
    Timer::set(s4u::Engine::get_clock(), [engine] { engine->tell_ends(); });
  }
}

void SimEngine::tell_ends() {
  std::list<Flow> ended;
  ended.splice(ended.end(), ended_flows_);
  ends_to_tell_ = 0;
  for (const Flow& flow : ended) {
    flow.left();
    end_pending();
  }
}

void SimEngine::in_background(Seconds delay, std::function<void()> event) {
  has_background_ = true;
  const auto self = std::make_shared<Timer*>(nullptr);
  *self =
      Timer::set(s4u::Engine::get_clock() + delay.count(), [this, self, run = std::move(event)] {
        background_timers_.erase(*self);
        run();
      });
  background_timers_.insert(*self);
}

std::shared_ptr<SimEngine::BackgroundFlow> SimEngine::start_background_flow(
    s4u::Host* from, s4u::Host* to, std::function<void(double)> stopped) {
  has_background_ = true;
  const double date = s4u::Engine::get_clock();
  std::erase_if(stopped_flows_, [date](const auto& earlier) { return earlier.first < date; });
  auto flow = std::make_shared<BackgroundFlow>(from, to, std::move(stopped));
  background_flows_.insert(flow);
  return flow;
}

void SimEngine::stop_background_flow(std::shared_ptr<BackgroundFlow> flow) {
  if (background_flows_.erase(flow) == 0) return;
  flow->stop();
  stopped_flows_.emplace_back(s4u::Engine::get_clock(), std::move(flow));
}

/// Nothing is pending: unless an actor that runs at this time changes that, only background
/// activity remains. Check a moment later, because timers fire before the actors woken at the same
/// time run.
void SimEngine::look_for_end() {
  constexpr double kMoment = 1e-10;  // seconds; events within 1 ps coincide
  // Earlier simulations of this process may have advanced the clock so far that this is below its
  // precision.
  constexpr double kDigits = 4 * std::numeric_limits<double>::epsilon();
  if (!has_background_ || is_looking_for_end_) return;
  is_looking_for_end_ = true;
  const double now = s4u::Engine::get_clock();
  Timer::set(now + std::max(kMoment, now * kDigits), [this] {
    is_looking_for_end_ = false;
    if (pending_ == 0) drop_background();
  });
}

void SimEngine::drop_background() {
  for (Timer* timer : background_timers_) timer->remove();
  background_timers_.clear();
  while (!background_flows_.empty()) stop_background_flow(*background_flows_.begin());
  has_background_ = false;
}

void SimEngine::set_watchdog(Seconds date, std::function<void()> event) {
  if (watchdog_timer_ != nullptr) watchdog_timer_->remove();
  watchdog_timer_ = nullptr;
  watchdog_date_ = origin_ + date.count();
  watchdog_event_ = std::move(event);
  if (pending_ > 0) arm_watchdog();
}

void SimEngine::arm_watchdog() {
  watchdog_timer_ = Timer::set(watchdog_date_, [this] {
    watchdog_timer_ = nullptr;
    watchdog_date_ = -1;
    const std::function<void()> event = std::move(watchdog_event_);
    event();
  });
}

void SimEngine::begin_pending() {
  if (++pending_ == 1 && watchdog_date_ >= 0) arm_watchdog();
}

void SimEngine::end_pending() {
  if (--pending_ > 0) return;
  if (watchdog_timer_ != nullptr) {
    watchdog_timer_->remove();
    watchdog_timer_ = nullptr;
  }
  look_for_end();
}

}  // namespace gradsync
