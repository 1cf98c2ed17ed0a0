#pragma once

#include <memory>
#include <string>

#include "gradsync/backends/store/rendezvous.hpp"
#include "gradsync/comm/group_options.hpp"
#include "gradsync/comm/process_group.hpp"

namespace gradsync {

/// Collectives between processes through Gloo over TCP.
///
/// All-reduce is Gloo's ring (same reduction order and bits) with the reduction functions of
/// engine/comm/reduce_functions.hpp; float16 and bfloat16 are rounded to nearest even at every hop.
///
/// Gloo has no reduce-scatter: it is Gloo's all-reduce of a copy of the input, of which each rank
/// keeps its slice, as in PyTorch's Gloo group. It costs what the all-reduce costs. `reduce` works
/// on a copy on all ranks but the root, because Gloo would overwrite their tensors. `alltoall` is
/// Gloo's alltoallv, after an alltoall of the sizes, which are compared. `send` and `recv` are
/// messages between unbound buffers, after an exchange of signatures between the two ranks.
///
/// Collectives run on `threads` communication threads. With one (the default) they run in program
/// order; with more, several may run concurrently and complete out of order, as in PyTorch's Gloo
/// group. Sends and receives run beside them, in program order for each peer and direction.
///
/// Before any data of a collective moves, each rank compares its signature (operation, elements,
/// dtype, root, reduction, label) with its left neighbor's, which around the ring compares all
/// ranks. A mismatch ends every rank with a kDesync error that names both signatures. The signature
/// is also part of the message tag, so mismatched collectives can never exchange data: no
/// corruption, no abort. The cost is one small message to the neighbor per collective.
///
/// The first failure anywhere (an error, a timeout, a death noticed by the launcher or a neighbor)
/// is published through the store and fails all pending and later works of every rank at once:
/// kTimeout on the rank that timed out, kRankDied if a rank died, kDesync on all ranks for a
/// mismatch, kPeerFailed otherwise.
class GlooProcessGroup final : public ProcessGroup {
 public:
  struct Options : GroupOptions {
    int threads = 1;             ///< communication threads, 1 to 8
    std::string interface;       ///< network interface; empty: the one that routes to MASTER_ADDR
    bool wrong_address = false;  ///< injected fault: publish an unreachable address
  };

  /// Blocks until all ranks have joined and are connected; throws kTimeout, naming the missing
  /// ranks, when the timeout expires. `job` must outlive the group.
  GlooProcessGroup(const RankEnvironment& environment, const JobStore& job, Clock& clock,
                   const Options& options);
  /// If `shutdown()` has not returned, tells the other ranks that this one is gone.
  ~GlooProcessGroup() override;

  void stall() override;
  std::string backend_name() const override { return "gloo"; }
  void shutdown() override;

  /// Tells all ranks that this one failed for a reason outside of a collective, and fails its
  /// works. May be called from any thread; only the first failure of a job counts.
  void abort(ErrorCode code, const std::string& cause);

 protected:
  WorkPtr do_allreduce(Tensor tensor, ReduceOp op, const CollectiveRecord& record) override;
  WorkPtr do_broadcast(Tensor tensor, int root, const CollectiveRecord& record) override;
  WorkPtr do_allgather(Tensor output, Tensor input, const CollectiveRecord& record) override;
  WorkPtr do_barrier(const CollectiveRecord& record) override;
  WorkPtr do_reduce(Tensor tensor, int root, ReduceOp op, const CollectiveRecord& record) override;
  WorkPtr do_reduce_scatter(Tensor output, Tensor input, ReduceOp op,
                            const CollectiveRecord& record) override;
  WorkPtr do_alltoall(Tensor output, Tensor input, const CollectiveRecord& record) override;
  WorkPtr do_send(Tensor tensor, int dst, const CollectiveRecord& record) override;
  WorkPtr do_recv(Tensor tensor, int src, const CollectiveRecord& record) override;
  std::shared_ptr<ProcessGroup> do_split(const std::string& name,
                                         const std::vector<int>& members) override;

 private:
  struct Impl;
  void refuse_average(OpType op, ReduceOp reduce_op) const;
  /// A subgroup of the job's ranks; `environment.rank` is an index into `members`.
  GlooProcessGroup(const RankEnvironment& environment, const std::shared_ptr<Store>& store,
                   Clock& clock, const Options& options, const std::vector<int>& members,
                   std::shared_ptr<FlightRecorder> recorder);
  std::unique_ptr<Impl> impl_;
};

}  // namespace gradsync
