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

/// Collectives among GPUs through NCCL, one process (in tests: one thread) a GPU.
///
/// Collectives run on a communication stream of the group's own. It is ordered against the device's
/// compute stream by events alone: a collective starts when what was in the compute stream at its
/// call is done; `Work::wait()` makes the compute stream wait for its end and returns, so what is
/// put there afterwards sees the result. The host waits in `barrier` and where it reads values
/// (CudaDevice), and nowhere else. `is_completed()` is about the GPU, not the host.
///
/// NCCL knows no timeout, and a rank that never comes or that calls something else shows as nothing
/// at all: kernels spin. A watchdog thread looks at the events: it enters start and end into the
/// flight recorder, asks NCCL for errors of its own, and ends a collective that has been at the
/// head of the queue for longer than the timeout. The first failure anywhere is published through
/// the store and ends every rank, as in the Gloo backend: later calls, waits, and waits of the
/// device throw; the communicator is aborted, which ends the kernels.
///
/// Unless `set_detail(false)` says otherwise, ranks compare through the store what each collective
/// is (SignatureComparison): a mismatch ends all with kDesync within milliseconds. Without it, it
/// ends as a hang, or in wrong numbers.
///
/// Subgroups (`split`) have a communicator, a stream and a watchdog of their own; they share the
/// job's end. Their communicator is split off the parent's where all its ranks are members and the
/// library has ncclCommSplit, and is made anew through the store otherwise, because NCCL wants the
/// call from all ranks of the parent. NCCL warns that communicators that are used at the same time
/// can wait for each other on the GPU: use them in one order on all ranks.
///
/// The reduction order is NCCL's, which depends on topology and algorithm: the same on every run of
/// one machine, different from Gloo's.
class NcclProcessGroup final : public ProcessGroup {
 public:
  struct Options : GroupOptions {
    Seconds watch_interval{0.1};  ///< how often the watchdog looks
    /// Register the buffers of collectives from 1 MiB on with NCCL, so that it uses them directly.
    /// The device's memory must then come from NcclApi::allocate. Ignored by versions that cannot.
    bool register_buffers = false;
  };

  /// Blocks until all ranks have joined and NCCL has connected them, or the timeout ends. `job`,
  /// `device`, `api` and `clock` must outlive the group. Two ranks on one GPU are refused with
  /// Error(kUsage), unless NCCL has been told to allow it (NCCL_MULTI_RANK_GPU_ENABLE,
  /// NCCL_HOSTID).
  NcclProcessGroup(const RankEnvironment& environment, const JobStore& job, CudaDevice& device,
                   NcclApi& api, Clock& clock, const Options& options);
  /// Without a `shutdown()` that returned, tells the others that this rank is gone.
  ~NcclProcessGroup() override;

  void stall() override;
  std::string backend_name() const override { return "nccl"; }
  void shutdown() override;

  /// Tells all ranks that this one failed, for a reason that is not a collective's, and ends its
  /// works. Safe to call from any thread; only the first failure of a job counts.
  void abort(ErrorCode code, const std::string& cause);

 protected:
  WorkPtr do_allreduce(Tensor tensor, ReduceOp op, const CollectiveRecord& record) override;
  WorkPtr do_broadcast(Tensor tensor, int root, const CollectiveRecord& record) override;
  WorkPtr do_allgather(Tensor output, Tensor input, const CollectiveRecord& record) override;
  WorkPtr do_barrier(const CollectiveRecord& record) override;
  std::shared_ptr<ProcessGroup> do_split(const std::string& name,
                                         const std::vector<int>& members) override;

 private:
  class Impl;
  /// `environment` has rank and size in the group.
  NcclProcessGroup(
      const RankEnvironment& environment, const std::string& name, Clock& clock,
      const std::shared_ptr<FlightRecorder>& recorder,
      const std::function<std::shared_ptr<Impl>(std::shared_ptr<FlightRecorder>)>& make_impl);

  std::shared_ptr<Impl> impl_;
};

}  // namespace gradsync
