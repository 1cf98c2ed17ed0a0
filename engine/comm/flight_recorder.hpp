#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "gradsync/comm/label.hpp"
#include "gradsync/core/units.hpp"
#include "gradsync/tensor/dtype.hpp"

namespace gradsync {

/// The operations of a process group, with the names of c10d's OpType in lower case.
enum class OpType {
  kAllreduce,
  kBroadcast,
  kAllgather,
  kReduce,
  kReduceScatter,
  kAlltoall,
  kSend,
  kRecv,
  kBarrier,
};
/// kAverage follows NCCL: every input is multiplied by 1/ranks and rounded to its dtype before the
/// sum. Floating-point types only, and not supported by every backend (Gloo has no average).
enum class ReduceOp { kSum, kMax, kMin, kAverage };

const char* to_string(OpType op) noexcept;    ///< "allreduce", "reduce_scatter", "send", ...
const char* to_string(ReduceOp op) noexcept;  ///< "sum", "max", "min", "average"

/// Whether the operation takes a ReduceOp: allreduce, reduce, reduce_scatter.
bool reduces(OpType op) noexcept;
/// Whether the operation has a root: broadcast, reduce.
bool has_root(OpType op) noexcept;
/// send and recv: two ranks take part, whatever the size of the group.
bool is_point_to_point(OpType op) noexcept;

/// State of a collective on one rank, as in PyTorch's flight recorder.
enum class CollectiveState {
  kScheduled,  ///< issued; earlier collectives of the group are still running
  kStarted,    ///< handed to the network
  kCompleted,  ///< this rank has its result
  kFailed,     ///< ended with an error, described by `error`
};

const char* to_string(CollectiveState state) noexcept;

/// The group of all ranks, as PyTorch calls it.
inline constexpr const char* kDefaultGroupName = "default_pg";

/// The name under which the messages from one rank of a group to another are recorded:
/// "default_pg:0->1". Each channel has its own sequence numbers, so the n-th send meets the n-th
/// recv, whatever else the two ranks issue.
std::string channel_name(const std::string& group, int from, int to);

struct Channel {
  std::string group;
  int from = 0;  ///< ranks in the group
  int to = 0;
};
/// The inverse of channel_name; nullopt for the name of a group.
std::optional<Channel> parse_channel(const std::string& name);

/// How many elements each rank sends to, and receives from, each rank in an alltoall.
struct AlltoallSplits {
  std::vector<std::int64_t> input;   ///< by receiver
  std::vector<std::int64_t> output;  ///< by sender
};

/// One collective (or send or recv), as seen by one rank.
struct CollectiveRecord {
  std::int64_t sequence = 0;  ///< per group and rank, from 0, in issue order
  /// Name of the process group, e.g. "default_pg"; of a send or recv: of its channel.
  std::string group;
  OpType op = OpType::kAllreduce;
  ReduceOp reduce_op = ReduceOp::kSum;
  /// broadcast, reduce: the root; send: the receiver; recv: the sender; otherwise -1.
  std::int32_t root = -1;
  std::int64_t elements = 0;  ///< of this rank's input (of a recv: of its output)
  DType dtype = DType::kFloat32;
  Bytes bytes = 0;
  CollectiveLabel label;
  /// If false, ranks may label this collective differently and still match (see
  /// ProcessGroup::set_detail). Not serialized: a record read from a file has true.
  bool label_must_match = true;
  /// alltoall only. Not serialized.
  std::shared_ptr<const AlltoallSplits> splits;
  /// Names of the parameters in the bucket, in bucket order (shared with the reducer; may be null).
  std::shared_ptr<const std::vector<std::string>> parameters;
  CollectiveState state = CollectiveState::kScheduled;
  Seconds issued{0};
  Seconds started{-1};    ///< negative until started
  Seconds completed{-1};  ///< negative until completed
  std::string error;
};

/// Ring buffer of the last collectives of one rank. Always on, on every backend.
///
/// Thread-safety: `schedule` is called by the rank's thread; `start`, `complete` and `fail` by the
/// rank's thread or a communication thread; `snapshot` by any thread (a watchdog, a signal-handling
/// thread).
class FlightRecorder {
 public:
  static constexpr std::size_t kDefaultCapacity = 2000;  // PyTorch's TORCH_FR_BUFFER_SIZE

  explicit FlightRecorder(std::size_t capacity = kDefaultCapacity);

  /// Adds a record (state kScheduled) and returns its sequence number within `record.group`.
  std::int64_t schedule(CollectiveRecord record);
  void start(const std::string& group, std::int64_t sequence, Seconds now);
  void complete(const std::string& group, std::int64_t sequence, Seconds now);
  void fail(const std::string& group, std::int64_t sequence, Seconds now, std::string error);

  /// The records still in the ring, oldest first.
  std::vector<CollectiveRecord> snapshot() const;
  /// The number of collectives ever scheduled, over all groups.
  std::int64_t total_scheduled() const;

  /// Calls `observer` with each record that completes or fails, on the completing thread and
  /// outside the lock. At most one observer; set it before the first collective.
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
