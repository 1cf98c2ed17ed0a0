#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "gradsync/backends/store/store.hpp"
#include "gradsync/comm/flight_recorder.hpp"

namespace gradsync {

/// Compares, through the store, what the ranks of a group say that their n-th collective is: the
/// first to come writes it down, the others look. NCCL itself compares nothing: ranks that are at
/// different collectives hang, or mix their numbers.
///
/// The comparison runs beside the collective, on a thread of its own: the host does not wait for
/// the store. So NCCL may have begun to move bytes when a mismatch is found; the job ends then,
/// within some store round trips, and no rank's `shutdown` returns before all its collectives are
/// compared.
class SignatureComparison {
 public:
  /// Called once, from the thread, with the cause of a kDesync failure.
  using OnMismatch = std::function<void(const std::string& cause)>;

  /// `job_rank` is named in the cause. `tidies`: this rank (one a group) removes what all have long
  /// passed. `timeout` bounds each call to the store.
  SignatureComparison(const std::shared_ptr<Store>& store, const std::string& group, int job_rank,
                      bool tidies, Seconds timeout, OnMismatch on_mismatch);
  ~SignatureComparison();
  SignatureComparison(const SignatureComparison&) = delete;
  SignatureComparison& operator=(const SignatureComparison&) = delete;

  /// Takes a moment, not a round trip.
  void add(const CollectiveRecord& record);
  /// Waits until all that was added is compared, or there is nothing more to compare with (a
  /// mismatch, a store that is gone).
  void finish();

 private:
  void run();
  /// The cause, where this rank's collective is not the first one's.
  std::string mismatch(const CollectiveRecord& record);

  PrefixStore store_;
  const int job_rank_;
  const bool tidies_;
  const Seconds timeout_;
  const OnMismatch on_mismatch_;

  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  std::deque<CollectiveRecord> queue_;
  bool idle_ = false;
  bool over_ = false;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace gradsync
