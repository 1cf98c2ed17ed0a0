#include "gradsync/testbed/record/report_keeper.hpp"

#include <new>
#include <utility>

namespace gradsync {
namespace {

template <typename T>
void keep_last(std::vector<T>& list, std::size_t count) {
  // Erases at the front only when the list has twice the wanted length, for amortized constant
  // cost.
  if (list.size() < 2 * count) return;
  list.erase(list.begin(), list.end() - static_cast<std::ptrdiff_t>(count));
}

}  // namespace

ReportKeeper::ReportKeeper(RankReport& report, Clock& clock, FlightRecorder& recorder,
                           std::mutex* mutex, bool collects)
    : report_(report), clock_(clock), recorder_(recorder), mutex_(mutex) {
  if (collects) collector_.emplace(recorder_);
}

ReportKeeper::~ReportKeeper() {
  const auto lock = hold();
  if (report_.state == RankState::kRunning) report_.ended = clock_.now();
  try {
    report_.flight = recorder_.snapshot();
    if (collector_) report_.collectives = collector_->records();
  } catch (const std::bad_alloc&) {
    // Out of memory while the rank ends: an incomplete report is better than none.
  }
}

void ReportKeeper::enter(Phase phase) {
  const Seconds now = clock_.now();
  update([&](RankReport& report) {
    report.phase = phase;
    report.phase_since = now;
    if (!report.phases.empty() && report.phases.back().phase == phase &&
        report.phases.back().step == report.steps_completed) {
      return;
    }
    report.phases.push_back({phase, report.steps_completed, now});
    keep_last(report.phases, kPhasesKept);
  });
}

void ReportKeeper::note(RankEventKind kind, const std::string& what) {
  update([&](RankReport& report) {
    report.events.push_back({kind, report.phase, report.steps_completed, what});
    keep_last(report.events, kEventsKept);
  });
}

void ReportKeeper::add_samples(std::int64_t epoch, const std::vector<std::int64_t>& indices) {
  update([&](RankReport& report) {
    ++report.batches_drawn;
    if (report.epochs.empty() || report.epochs.back().epoch != epoch) {
      report.epochs.push_back({epoch, {}, true});
    }
    EpochSamples& samples = report.epochs.back();
    if (samples_kept_ + indices.size() > kSamplesKept) {
      samples.complete = false;
      return;
    }
    samples_kept_ += indices.size();
    samples.indices.insert(samples.indices.end(), indices.begin(), indices.end());
  });
}

void ReportKeeper::add_step(StepRecord step) {
  update([&](RankReport& report) {
    report.steps.push_back(std::move(step));
    if (report.steps.size() > kChecksumsKept) {
      report.steps[report.steps.size() - 1 - kChecksumsKept].checksums.clear();
    }
  });
}

void ReportKeeper::finished() {
  const Seconds now = clock_.now();
  update([&](RankReport& report) {
    report.state = RankState::kFinished;
    report.ended = now;
  });
}

void ReportKeeper::failed(ErrorCode code, const std::string& what) {
  const Seconds now = clock_.now();
  update([&](RankReport& report) {
    report.state = RankState::kFailed;
    report.ended = now;
  });
  error(code, what);
}

void ReportKeeper::cleans_up() {
  const Seconds now = clock_.now();
  update([&](RankReport& report) { report.clean_up_since = now; });
}

void ReportKeeper::error(ErrorCode code, const std::string& what) {
  update([&](RankReport& report) {
    report.error_code = code;
    report.error = what;
  });
}

}  // namespace gradsync
