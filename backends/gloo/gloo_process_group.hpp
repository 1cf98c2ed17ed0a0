#pragma once

#include <memory>
#include <string>

#include "gradsync/backends/store/rendezvous.hpp"
#include "gradsync/comm/group_options.hpp"
#include "gradsync/comm/process_group.hpp"

namespace gradsync {

/// Collectives among processes through Gloo over TCP.
///
/// All-reduce is Gloo's ring (reduction order and bits are Gloo's) with the reduction functions of
/// engine/comm/reduce_functions.hpp; float16 and bfloat16 are rounded to nearest even at every hop.
///
/// Works run on `threads` communication threads. With one (the default) they run in program order;
/// with more, several may be under way at once and end out of order, as in PyTorch's Gloo group.
///
/// Before the bytes of a collective move each rank compares its signature (operation, elements,
/// dtype, root, reduction, label) with its left neighbour's; over the ring that compares all. A
/// difference ends every rank with kDesync that names both. In addition the signature is part of
/// the tag under which messages meet, so collectives that differ cannot exchange data: no
/// corruption, no abort. The cost is one small message to the neighbour for each collective.
///
/// The first failure anywhere (an error, a timeout, a death that the launcher or a neighbour
/// notices) is published through the store, and ends the pending and all later works of every rank
/// at once: kTimeout on the rank whose wait ran out, kRankDied where a rank died, kDesync for a
/// mismatch on all ranks, kPeerFailed elsewhere.
class GlooProcessGroup final : public ProcessGroup {
 public:
  struct Options : GroupOptions {
    int threads = 1;             ///< communication threads, 1 to 8
    std::string interface;       ///< network interface; empty: the one that reaches MASTER_ADDR
    bool wrong_address = false;  ///< a fault: the others are given an address that leads nowhere
  };

  /// Blocks until all ranks have joined and are connected, or the timeout ends (kTimeout, with the
  /// ranks that did not come). `job` must outlive the group.
  GlooProcessGroup(const RankEnvironment& environment, const JobStore& job, Clock& clock,
                   const Options& options);
  /// Without a `shutdown()` that returned, tells the others that this rank is gone.
  ~GlooProcessGroup() override;

  void stall() override;
  std::string backend_name() const override { return "gloo"; }
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
  struct Impl;
  /// A subgroup of the job's ranks; `environment.rank` is an index into `members`.
  GlooProcessGroup(const RankEnvironment& environment, const std::shared_ptr<Store>& store,
                   Clock& clock, const Options& options, const std::vector<int>& members,
                   std::shared_ptr<FlightRecorder> recorder);
  std::unique_ptr<Impl> impl_;
};

}  // namespace gradsync
