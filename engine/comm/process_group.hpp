#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gradsync/comm/flight_recorder.hpp"
#include "gradsync/comm/work.hpp"
#include "gradsync/core/clock.hpp"
#include "gradsync/tensor/tensor.hpp"

namespace gradsync {

/// What a caller says about a collective beside its tensors.
struct CollectiveOptions {
  CollectiveLabel label;
  std::shared_ptr<const std::vector<std::string>> parameters;  ///< names in the bucket; may be null
};

/// The first of the engine's three seams: the ranks of a job and the collectives among them.
///
/// Ordering: works start in the order in which they were issued, and every rank must issue the same
/// collectives in the same order. A work may still be running when the next is issued.
///
/// Ownership: tensors are kept alive by the work; they must not be read or written between the call
/// and the return of `Work::wait()`.
///
/// Thread-safety: one rank, one thread (or actor); a backend may use threads of its own inside.
///
/// Every call is entered in the flight recorder here, so that all backends record alike; a backend
/// implements the protected `do_*` calls, reports `started` and `completed`, and turns its failures
/// into CommError.
class ProcessGroup {
 public:
  virtual ~ProcessGroup() = default;

  int rank() const noexcept { return rank_; }
  int size() const noexcept { return size_; }
  const std::string& name() const noexcept { return name_; }
  /// "gloo", "nccl", "sim".
  virtual std::string backend_name() const = 0;
  Clock& clock() const noexcept { return *clock_; }
  FlightRecorder& flight_recorder() const noexcept { return *recorder_; }
  std::shared_ptr<FlightRecorder> shared_flight_recorder() const noexcept { return recorder_; }

  /// In place: `tensor` becomes the reduction over all ranks. Same numel and dtype on every rank.
  /// All ranks end with identical bits.
  WorkPtr allreduce(Tensor tensor, ReduceOp op, const CollectiveOptions& options);
  /// In place: every rank's `tensor` becomes that of `root`.
  WorkPtr broadcast(Tensor tensor, int root, const CollectiveOptions& options);
  /// `output` has shape [size, ...input.shape]; slice r becomes rank r's `input`.
  WorkPtr allgather(Tensor output, Tensor input, const CollectiveOptions& options);
  /// Done when every rank has issued it.
  WorkPtr barrier(const CollectiveOptions& options);

  /// Says that this rank issues nothing more, and stays reachable until every rank has said so (its
  /// last messages must be delivered, and a rank that is done must not look like one that crashed).
  /// Throws CommError(kTimeout) when the others do not come, CommError(kPeerFailed) when one
  /// failed.
  virtual void shutdown() = 0;

  /// Whether labels are part of what is compared before bytes move (true at first). With false only
  /// what must fit for them to move is (operation, elements, dtype, root, reduction; on NCCL
  /// nothing). Set it before the first collective, to the same on all ranks.
  void set_detail(bool detail) noexcept { detail_ = detail; }

  /// A group of some of the ranks (ascending, this one among them), with sequence numbers of its
  /// own. A collective over its members: returns when all have called it. Its failures are the
  /// job's, and its messages name the job's ranks. Entered in the flight recorder as a barrier of
  /// that group.
  std::shared_ptr<ProcessGroup> split(const std::string& name, const std::vector<int>& members);

  /// Never returns: a rank that does not come back from what it does. Ends with the CommError that
  /// ends the job's other ranks.
  virtual void stall();

 protected:
  ProcessGroup(int rank, int size, std::string name, Clock& clock,
               std::shared_ptr<FlightRecorder> recorder);

  /// The collectives themselves. `record` is this rank's entry in the flight recorder, with its
  /// sequence number; the backend calls `flight_recorder().start(...)` when it hands the collective
  /// to the network and `complete` or `fail` when it ends.
  virtual WorkPtr do_allreduce(Tensor tensor, ReduceOp op, const CollectiveRecord& record) = 0;
  virtual WorkPtr do_broadcast(Tensor tensor, int root, const CollectiveRecord& record) = 0;
  virtual WorkPtr do_allgather(Tensor output, Tensor input, const CollectiveRecord& record) = 0;
  virtual WorkPtr do_barrier(const CollectiveRecord& record) = 0;
  /// Throws Error(kUsage) where a backend has no such groups.
  virtual std::shared_ptr<ProcessGroup> do_split(const std::string& name,
                                                 const std::vector<int>& members);

 private:
  CollectiveRecord enter(OpType op, std::int64_t elements, DType dtype, Bytes bytes,
                         const CollectiveOptions& options);
  CollectiveRecord schedule(CollectiveRecord record);

  int rank_;
  int size_;
  std::string name_;
  Clock* clock_;
  std::shared_ptr<FlightRecorder> recorder_;
  bool detail_ = true;
};

}  // namespace gradsync
