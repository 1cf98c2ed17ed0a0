#include "tools/command/backends.hpp"

#ifdef GRADSYNC_HAVE_SIMGRID
#include <unistd.h>

#include <chrono>
#include <iostream>
#include <memory>

#include "gradsync/predict/progress_line.hpp"
#include "gradsync/simulator/simulation.hpp"
#endif

namespace gradsync {
namespace {

#ifdef GRADSYNC_HAVE_SIMGRID
/// A progress line on standard error, if that is a terminal, for the lifetime of the object.
class Progress {
 public:
  explicit Progress(const RunObserver& observer) : observer_(observer) {
    if (::isatty(STDERR_FILENO) != 1) return;
    line_ = std::make_shared<ProgressLine>(
        std::cerr, [] { return Seconds(std::chrono::steady_clock::now().time_since_epoch()); });
    // The callback outlives the line, and then does nothing.
    on_time_advance([weak = std::weak_ptr(line_)](Seconds delta) {
      if (const auto line = weak.lock()) line->event(delta);
    });
  }
  ~Progress() {
    if (line_) line_->clear();
  }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Replaces the run's observer; empty if there is nobody to notify.
  RunObserver observer() {
    if (!line_) return observer_;
    return [this](const nlohmann::ordered_json& event) {
      line_->step();
      line_->clear();  // the event may print something
      if (observer_) observer_(event);
    };
  }

 private:
  const RunObserver& observer_;
  std::shared_ptr<ProgressLine> line_;
};

RunOutcome simulate_with_progress(const Scenario& scenario, const RankBody& body,
                                  const RunObserver& observer) {
  Progress progress(observer);
  return run_simulated(scenario, body, progress.observer());
}
#endif

}  // namespace

Backend sim_backend() {
  Backend backend;
  backend.descriptor = backend_descriptor("sim");
#ifdef GRADSYNC_HAVE_SIMGRID
  backend.simulate = simulate_with_progress;
#else
  backend.why_not = GRADSYNC_SIMGRID_WHY_NOT;
#endif
  return backend;
}

}  // namespace gradsync
