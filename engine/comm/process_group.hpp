#pragma once

#include <cstdint>
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
  /// `output` has shape [size, ...input.shape]; slice r becomes rank r's `input`:
  /// all_gather_into_tensor. `input` may be slice `rank` of `output` (in place).
  WorkPtr allgather(Tensor output, Tensor input, const CollectiveOptions& options);
  /// In place on `root`, whose `tensor` becomes the reduction over all ranks; the others keep
  /// theirs.
  WorkPtr reduce(Tensor tensor, int root, ReduceOp op, const CollectiveOptions& options);
  /// `input` has shape [size, ...output.shape]; `output` becomes the reduction of all ranks' slice
  /// `rank`: reduce_scatter_tensor. `output` may be slice `rank` of `input` (in place).
  WorkPtr reduce_scatter(Tensor output, Tensor input, ReduceOp op,
                         const CollectiveOptions& options);
  /// all_to_all_single: part r of `input` becomes part `rank` of rank r's `output`. The parts are
  /// equal. The tensors must not overlap.
  WorkPtr alltoall(Tensor output, Tensor input, const CollectiveOptions& options);
  /// With parts of different sizes, counted along the first dimension, by rank; zeros are allowed.
  /// What a rank sends to another must be what that one expects of it.
  WorkPtr alltoall(Tensor output, Tensor input, std::vector<std::int64_t> output_split_sizes,
                   std::vector<std::int64_t> input_split_sizes, const CollectiveOptions& options);
  /// The n-th send from one rank to another meets that one's n-th recv, which must have the same
  /// numel and dtype. There are no tags. The work of a send completes when `tensor` may be reused.
  /// On NCCL, sends and receives run in stream order with the collectives of the group, so two
  /// ranks that both send first and receive afterwards can hang; on Gloo they can not.
  WorkPtr send(Tensor tensor, int dst, const CollectiveOptions& options);
  WorkPtr recv(Tensor tensor, int src, const CollectiveOptions& options);
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
  /// These throw Error(kUsage) by default: a backend need not have them.
  virtual WorkPtr do_reduce(Tensor tensor, int root, ReduceOp op, const CollectiveRecord& record);
  virtual WorkPtr do_reduce_scatter(Tensor output, Tensor input, ReduceOp op,
                                    const CollectiveRecord& record);
  /// The sizes of the parts, in elements, are in `record.splits`, which is never null here.
  virtual WorkPtr do_alltoall(Tensor output, Tensor input, const CollectiveRecord& record);
  virtual WorkPtr do_send(Tensor tensor, int dst, const CollectiveRecord& record);
  virtual WorkPtr do_recv(Tensor tensor, int src, const CollectiveRecord& record);
  /// Throws Error(kUsage) on backends without subgroups.
  virtual std::shared_ptr<ProcessGroup> do_split(const std::string& name,
                                                 const std::vector<int>& members);

 private:
  CollectiveRecord enter(OpType op, std::int64_t elements, DType dtype, Bytes bytes,
                         const CollectiveOptions& options);
  CollectiveRecord enter(OpType op, const Tensor& tensor, const CollectiveOptions& options);
  CollectiveRecord schedule(CollectiveRecord record);
  CollectiveRecord schedule_message(OpType op, const Tensor& tensor, int from, int to,
                                    const CollectiveOptions& options);
  void check_reduction(OpType op, ReduceOp reduce_op, DType dtype) const;
  void check_root(OpType op, int root) const;
  void check_parts(OpType op, const Tensor& whole, const Tensor& part) const;
  void check_peer(OpType op, int peer) const;
  [[noreturn]] void misuse(const std::string& what) const;
  /// Records the failure of a call that the backend does not have, and throws.
  [[noreturn]] void unsupported(const CollectiveRecord& record);

  int rank_;
  int size_;
  std::string name_;
  Clock* clock_;
  std::shared_ptr<FlightRecorder> recorder_;
  bool detail_ = true;
};

}  // namespace gradsync
