#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gradsync/backends/cuda/cuda_device.hpp"
#include "gradsync/backends/nccl/nccl_api.hpp"
#include "gradsync/backends/store/rendezvous.hpp"
#include "gradsync/comm/group_options.hpp"
#include "gradsync/comm/process_group.hpp"

namespace gradsync {

/// Collectives between GPUs through NCCL, one process (in tests: one thread) per GPU.
///
/// Each group runs its collectives on its own communication stream, which is ordered against the
/// device's compute stream by events only. A collective starts when the work that was in the
/// compute stream at the time of the call has completed. `Work::wait()` makes the compute stream
/// wait for the collective and returns, so later work in the compute stream sees the result. The
/// host blocks only in `barrier` and when it reads values (CudaDevice). `is_completed()` refers to
/// the GPU, not the host.
///
/// NCCL has no timeout: if a rank is missing or calls a different collective, the kernels just
/// spin. A watchdog thread therefore polls the events, records start and end in the flight
/// recorder, polls NCCL's asynchronous errors, and fails a collective that has been at the head of
/// the queue for longer than the timeout. The first failure anywhere is published through the store
/// and ends every rank, as in the Gloo backend: later calls, waits, and device waits throw, and the
/// communicator is aborted, which ends the kernels.
///
/// Unless disabled by `set_detail(false)`, ranks compare the signature of each collective through
/// the store (SignatureComparison): a mismatch ends all ranks with kDesync within milliseconds.
/// Without the comparison, a mismatch hangs or yields wrong values.
///
/// `alltoall` is one group of ncclSend and ncclRecv, a pair for each rank. Sends and receives run
/// in the same stream as the collectives: a recv whose send never comes blocks what is behind it.
///
/// Subgroups (`split`) have their own communicator, stream and watchdog; they share the end of the
/// job. If all ranks of the parent are members and the library has ncclCommSplit, the communicator
/// is split off the parent's; otherwise it is created anew through the store, because NCCL requires
/// the split call on all ranks of the parent. NCCL warns that concurrent use of several
/// communicators can deadlock on the GPU: use them in the same order on all ranks.
///
/// The reduction order is NCCL's, which depends on topology and algorithm: the same in every run on
/// one machine, different from Gloo's.
class NcclProcessGroup final : public ProcessGroup {
 public:
  struct Options : GroupOptions {
    Seconds watch_interval{0.1};  ///< polling interval of the watchdog
    /// Register collective buffers of 1 MiB or more with NCCL, so that it uses them directly. The
    /// device's memory must then come from NcclApi::allocate. Ignored by NCCL versions without
    /// registration.
    bool register_buffers = false;
  };

  /// Blocks until all ranks have joined and NCCL has connected them, or until the timeout. `job`,
  /// `device`, `api` and `clock` must outlive the group. Throws Error(kUsage) if two ranks share a
  /// GPU, unless NCCL is configured to allow it (NCCL_MULTI_RANK_GPU_ENABLE, NCCL_HOSTID).
  NcclProcessGroup(const RankEnvironment& environment, const JobStore& job, CudaDevice& device,
                   NcclApi& api, Clock& clock, const Options& options);
  /// If `shutdown()` has not returned, tells the other ranks that this one is gone.
  ~NcclProcessGroup() override;

  void stall() override;
  std::string backend_name() const override { return "nccl"; }
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
  class Impl;
  /// `environment` has the rank and size within the group.
  NcclProcessGroup(
      const RankEnvironment& environment, const std::string& name, Clock& clock,
      const std::shared_ptr<FlightRecorder>& recorder,
      const std::function<std::shared_ptr<Impl>(std::shared_ptr<FlightRecorder>)>& make_impl);

  std::shared_ptr<Impl> impl_;
};

}  // namespace gradsync
