#pragma once

#include <mutex>
#include <optional>
#include <string>

#include "gradsync/core/clock.hpp"
#include "gradsync/testbed/record/collective_collector.hpp"
#include "gradsync/testbed/record/rank_report.hpp"

namespace gradsync {

/// Keeps a rank's report up to date while the rank runs, and completes it when the rank ends, even
/// through the simulator's exception that ends a blocked actor.
///
/// Another thread may read the report at any time (to dump a running job), so the rank's thread
/// changes it only through this class, under `mutex`.
class ReportKeeper {
 public:
  static constexpr std::size_t kPhasesKept = 128;
  static constexpr std::size_t kEventsKept = 64;
  static constexpr std::size_t kChecksumsKept = 256;  ///< steps whose checksums are kept
  static constexpr std::size_t kSamplesKept = 65536;  ///< sample indices, over all epochs

  /// `mutex` may be null if nobody else reads. `collects`: keep collectives beyond the flight
  /// recorder's, and texts of some KB.
  ReportKeeper(RankReport& report, Clock& clock, FlightRecorder& recorder, std::mutex* mutex,
               bool collects);
  ~ReportKeeper();
  ReportKeeper(const ReportKeeper&) = delete;
  ReportKeeper& operator=(const ReportKeeper&) = delete;

  template <typename Change>
  void update(const Change& change) {
    const auto lock = hold();
    change(report_);
  }

  /// Only for the rank's own thread.
  const RankReport& report() const noexcept { return report_; }
  /// Whether the rank is reported in detail (`collects`).
  bool keeps_detail() const noexcept { return collector_.has_value(); }

  void enter(Phase phase);
  /// Adds an entry to the rank's log: something it did besides training.
  void note(RankEventKind kind, const std::string& what);
  void add_samples(std::int64_t epoch, const std::vector<std::int64_t>& indices);
  void add_step(StepRecord step);

  void finished();
  void failed(ErrorCode code, const std::string& what);
  /// The rank has failed and starts its clean-up, which may not end.
  void cleans_up();
  void error(ErrorCode code, const std::string& what);

 private:
  std::unique_lock<std::mutex> hold() const {
    return mutex_ == nullptr ? std::unique_lock<std::mutex>() : std::unique_lock(*mutex_);
  }

  RankReport& report_;
  Clock& clock_;
  FlightRecorder& recorder_;
  std::mutex* mutex_;
  std::optional<CollectiveCollector> collector_;
  std::size_t samples_kept_ = 0;
};

}  // namespace gradsync
