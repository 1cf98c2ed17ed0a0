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

/// Compares the signatures of each collective of a group through the store: the first rank to
/// arrive writes its signature, the others compare. NCCL itself does not check: with mismatched
/// collectives it hangs or mixes up data.
///
/// A send and its recv are compared with each other, and in an alltoall each pair of ranks compares
/// the sizes of what the two exchange.
///
/// The comparison runs on its own thread, concurrently with the collective, so the host does not
/// wait for the store. NCCL may therefore have started to move data when a mismatch is found; the
/// job then ends within a few store round trips. No rank's `shutdown` returns before all its
/// collectives have been compared.
class SignatureComparison {
 public:
  /// Called once, from the comparison thread, with the cause of a kDesync failure.
  using OnMismatch = std::function<void(const std::string& cause)>;

  /// `rank` is this rank within the group. `job_rank` is named in the cause. `tidies`: this rank
  /// (one per group) deletes the keys that all ranks have passed. `timeout` bounds each store call.
  SignatureComparison(const std::shared_ptr<Store>& store, const std::string& group, int rank,
                      int job_rank, bool tidies, Seconds timeout, OnMismatch on_mismatch);
  ~SignatureComparison();
  SignatureComparison(const SignatureComparison&) = delete;
  SignatureComparison& operator=(const SignatureComparison&) = delete;

  /// Enqueues the record; does not wait for a store round trip.
  void add(const CollectiveRecord& record);
  /// Waits until everything enqueued has been compared, or comparing has stopped (a mismatch, a
  /// lost store).
  void finish();

 private:
  void run();
  /// The cause of the mismatch, if this rank's collective differs from the first rank's; otherwise
  /// empty.
  std::string mismatch(const CollectiveRecord& record);
  std::string message_mismatch(const CollectiveRecord& record);
  std::string split_mismatch(const CollectiveRecord& record);

  PrefixStore store_;
  const int rank_;  // within the group
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
