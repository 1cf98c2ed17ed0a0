#pragma once

#include <functional>
#include <memory>

#include "gradsync/comm/process_group.hpp"
#include "gradsync/simulator/collective/sim_group.hpp"
#include "gradsync/simulator/kernel/sim_clock.hpp"

namespace gradsync {

/// One simulated rank's view of a SimGroup. Issuing a collective and waiting for it first pay the
/// clock's debt, so that both happen at the time shown by the rank's clock. So does
/// `Work::is_completed`. Polling takes no simulated time, so a rank that polls must spend some
/// (Clock::advance) in between.
///
/// Failures: kTimeout if a wait (or shutdown) exceeds the group's timeout, kDesync on all ranks if
/// matching collectives differ, otherwise the failure passed to `SimGroup::fail`. A wait that can
/// never end throws no Error: SimGrid detects the deadlock immediately and unwinds the rank's stack
/// with an exception that must not be caught.
class SimProcessGroup final : public ProcessGroup {
 public:
  SimProcessGroup(int rank, SimGroup& group, SimClock& clock,
                  std::shared_ptr<FlightRecorder> recorder);

  std::string backend_name() const override { return "sim"; }
  void shutdown() override;
  void stall() override;

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
  WorkPtr issue(Tensor input, Tensor output, const CollectiveRecord& record,
                std::function<void()> take_result = {});
  void scale_for(ReduceOp op, Tensor& tensor) const;

  SimGroup* group_;
  SimClock* clock_;
};

}  // namespace gradsync
