#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gradsync/comm/flight_recorder.hpp"
#include "gradsync/comm/work.hpp"
#include "gradsync/core/clock.hpp"
#include "gradsync/tensor/tensor.hpp"

namespace gradsync {

/// Metadata of a collective, passed along with its tensors.
struct CollectiveOptions {
  CollectiveLabel label;
  std::shared_ptr<const std::vector<std::string>> parameters;  ///< names in the bucket; may be null
};

/// The first of the engine's three seams: the ranks of a job and the collectives among them.
///
/// Ordering: works start in issue order, and every rank must issue the same collectives in the same
/// order. The next work may be issued while earlier ones are still running.
///
/// Ownership: a work keeps its tensors alive. Do not read or write them between the call and the
/// return of `Work::wait()`.
///
/// Thread-safety: one rank, one thread (or actor); a backend may use its own threads internally.
///
/// The public calls record the collective in the flight recorder, so all backends record alike. A
/// backend implements the protected `do_*` calls, reports `started` and `completed`, and converts
/// its failures to CommError.
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

  /// In place: `tensor` becomes the reduction over all ranks. All ranks must pass the same numel
  /// and dtype, and all end with identical bits.
  WorkPtr allreduce(Tensor tensor, ReduceOp op, const CollectiveOptions& options);
  /// In place: every rank's `tensor` becomes that of `root`.
  WorkPtr broadcast(Tensor tensor, int root, const CollectiveOptions& options);
  /// `output` has shape [size, ...input.shape]; slice r becomes rank r's `input`.
  WorkPtr allgather(Tensor output, Tensor input, const CollectiveOptions& options);
  /// Completes when every rank has issued it.
  WorkPtr barrier(const CollectiveOptions& options);

  /// Announces that this rank issues no more collectives, and returns when every rank has done so.
  /// Until then this rank stays reachable, because its last messages must be delivered and a
  /// finished rank must not look like a crashed one. Throws CommError(kTimeout) if other ranks do
  /// not arrive in time, CommError(kPeerFailed) if one failed.
  virtual void shutdown() = 0;

  /// Whether the ranks compare labels before data moves (default true). With false, only what the
  /// transport needs to agree is compared: operation, elements, dtype, root and reduction, and on
  /// NCCL nothing. Set it before the first collective, to the same value on all ranks.
  void set_detail(bool detail) noexcept { detail_ = detail; }

  /// Creates a subgroup of `members` (ascending, including this rank) with its own sequence
  /// numbers. Collective over the members: returns when all of them have called it. A failure in
  /// the subgroup fails the whole job, and its messages use the job's rank numbers. Recorded in the
  /// flight recorder as a barrier of the subgroup.
  std::shared_ptr<ProcessGroup> split(const std::string& name, const std::vector<int>& members);

  /// Simulates a rank that hangs: never returns normally, and throws the CommError that ends the
  /// job's other ranks.
  virtual void stall();

 protected:
  ProcessGroup(int rank, int size, std::string name, Clock& clock,
               std::shared_ptr<FlightRecorder> recorder);

  /// The collectives themselves. `record` is this rank's flight recorder entry, including its
  /// sequence number. The backend calls `flight_recorder().start(...)` when it hands the collective
  /// to the network, and `complete` or `fail` when the collective ends.
  virtual WorkPtr do_allreduce(Tensor tensor, ReduceOp op, const CollectiveRecord& record) = 0;
  virtual WorkPtr do_broadcast(Tensor tensor, int root, const CollectiveRecord& record) = 0;
  virtual WorkPtr do_allgather(Tensor output, Tensor input, const CollectiveRecord& record) = 0;
  virtual WorkPtr do_barrier(const CollectiveRecord& record) = 0;
  /// Throws Error(kUsage) on backends without subgroups.
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
