#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "gradsync/comm/label.hpp"
#include "gradsync/core/units.hpp"
#include "gradsync/tensor/dtype.hpp"

namespace gradsync {

enum class OpType { kAllreduce, kBroadcast, kAllgather, kBarrier };
/// kAverage is NCCL's: every input is multiplied by 1/ranks, rounded to its dtype, before the sum.
/// Only of floating-point types, and not on every backend (Gloo has none).
enum class ReduceOp { kSum, kMax, kMin, kAverage };

const char* to_string(OpType op) noexcept;    ///< "allreduce", "broadcast", "allgather", "barrier"
const char* to_string(ReduceOp op) noexcept;  ///< "sum", "max", "min", "average"

/// Life of a collective on one rank, as in PyTorch's flight recorder.
enum class CollectiveState {
  kScheduled,  ///< issued; earlier collectives of the group are still running
  kStarted,    ///< handed to the network
  kCompleted,  ///< this rank has its result
  kFailed,     ///< ended with an error (`error` says which)
};

const char* to_string(CollectiveState state) noexcept;

/// The group of all ranks, as PyTorch calls it.
inline constexpr const char* kDefaultGroupName = "default_pg";

/// One collective of one rank.
struct CollectiveRecord {
  std::int64_t sequence = 0;  ///< per group and rank, from 0, in the order of issue
  std::string group;          ///< process group's name, "default_pg"
  OpType op = OpType::kAllreduce;
  ReduceOp reduce_op = ReduceOp::kSum;
  std::int32_t root = -1;  ///< broadcast only
  std::int64_t elements = 0;
  DType dtype = DType::kFloat32;
  Bytes bytes = 0;
  CollectiveLabel label;
  /// False: the ranks' labels may differ when this collective meets its like (see
  /// ProcessGroup::set_detail). Never written down: a record that was read has true.
  bool label_must_match = true;
  /// Names of the parameters in the bucket, in bucket order (shared with the reducer; may be null).
  std::shared_ptr<const std::vector<std::string>> parameters;
  CollectiveState state = CollectiveState::kScheduled;
  Seconds issued{0};
  Seconds started{-1};    ///< negative while it has not
  Seconds completed{-1};  ///< negative while it has not
  std::string error;
};

/// The last collectives of one rank: a ring buffer of fixed size, always on, on every backend.
///
/// Thread-safety: `schedule` is called by the rank's thread; `start`, `complete` and `fail` by it
/// or by a communication thread; `snapshot` by anyone (a watchdog, a signal's handler thread).
class FlightRecorder {
 public:
  static constexpr std::size_t kDefaultCapacity = 2000;  // PyTorch's TORCH_FR_BUFFER_SIZE

  explicit FlightRecorder(std::size_t capacity = kDefaultCapacity);

  /// Adds a record (state kScheduled) and returns its sequence number within `record.group`.
  std::int64_t schedule(CollectiveRecord record);
  void start(const std::string& group, std::int64_t sequence, Seconds now);
  void complete(const std::string& group, std::int64_t sequence, Seconds now);
  void fail(const std::string& group, std::int64_t sequence, Seconds now, std::string error);

  /// The records that the ring still holds, oldest first.
  std::vector<CollectiveRecord> snapshot() const;
  /// How many collectives were ever scheduled, in all groups.
  std::int64_t total_scheduled() const;

  /// Called (outside the lock) with each record when it completes or fails, on the thread that
  /// completes it. At most one observer; set it before the first collective.
  void set_completion_observer(std::function<void(const CollectiveRecord&)> observer);

 private:
  CollectiveRecord* find(const std::string& group, std::int64_t sequence);
  void finish(const std::string& group, std::int64_t sequence, Seconds now, CollectiveState state,
              std::string error);

  mutable std::mutex mutex_;
  std::size_t capacity_;
  std::deque<CollectiveRecord> ring_;
  std::vector<std::pair<std::string, std::int64_t>> next_sequence_;  // by group; few groups
  std::int64_t total_ = 0;
  std::function<void(const CollectiveRecord&)> observer_;
};

}  // namespace gradsync
