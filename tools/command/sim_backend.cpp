#include "tools/command/backends.hpp"

#ifdef GRADSYNC_HAVE_SIMGRID
#include <unistd.h>

#include <chrono>
#include <iostream>
#include <memory>

#include "gradsync/predict/progress_line.hpp"
#include "gradsync/simulator/kernel/simgrid_compat.hpp"
#include "gradsync/simulator/simulation.hpp"
#endif

namespace gradsync {
namespace {

#ifdef GRADSYNC_HAVE_SIMGRID
/// A progress line on standard error, where that is a terminal, as long as this lives.
class Progress {
 public:
  explicit Progress(const std::function<void(const StepRecord&)>& on_step) : on_step_(on_step) {
    if (::isatty(STDERR_FILENO) != 1) return;
    line_ = std::make_shared<ProgressLine>(
        std::cerr, [] { return Seconds(std::chrono::steady_clock::now().time_since_epoch()); });
    // SimGrid keeps its callbacks for ever; this one outlives the line and then does nothing.
    simgrid::s4u::Engine::on_time_advance_cb([weak = std::weak_ptr(line_)](double delta) {
      if (const auto line = weak.lock()) line->event(Seconds(delta));
    });
  }
  ~Progress() {
    if (line_) line_->clear();
  }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void step(const StepRecord& record) {
    if (line_) {
      line_->step();
      line_->clear();  // what is printed of the step must not be written behind it
    }
    if (on_step_) on_step_(record);
  }

 private:
  const std::function<void(const StepRecord&)>& on_step_;
  std::shared_ptr<ProgressLine> line_;
};

RunOutcome run_all_simulated(const Scenario& scenario, const SimulationRequest& request) {
  Progress progress(request.on_step);
  if (!request.body) {
    return run_simulated(scenario, [&](const StepRecord& record) { progress.step(record); });
  }
  return run_simulated(scenario, request.body);
}
#endif

}  // namespace

Backend sim_backend() {
  Backend backend;
  backend.name = "sim";
  backend.summary = "the same engine on simulated ranks and links (SimGrid), in one process";
#ifdef GRADSYNC_HAVE_SIMGRID
  backend.run_all = run_all_simulated;
#else
  backend.why_not = GRADSYNC_SIMGRID_WHY_NOT;
#endif
  return backend;
}

}  // namespace gradsync
