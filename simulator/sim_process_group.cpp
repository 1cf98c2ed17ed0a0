#include "simulator/sim_process_group.hpp"

namespace gradsync {
namespace {

class SimWork final : public Work {
 public:
  SimWork(SimGroup& group, SimClock& clock, OperationPtr operation)
      : group_(&group), clock_(&clock), operation_(std::move(operation)) {}

  void wait() override {
    clock_->settle();
    group_->wait(*operation_);
  }

  bool is_completed() const override {
    clock_->settle();
    return group_->is_over(*operation_);
  }

 private:
  SimGroup* group_;
  SimClock* clock_;
  OperationPtr operation_;
};

}  // namespace

SimProcessGroup::SimProcessGroup(int rank, SimGroup& group, SimClock& clock,
                                 std::shared_ptr<FlightRecorder> recorder)
    : ProcessGroup(rank, group.size(), group.options().name, clock, std::move(recorder)),
      group_(&group),
      clock_(&clock) {
  group.enrol(rank, flight_recorder());
}

WorkPtr SimProcessGroup::issue(Tensor input, Tensor output, const CollectiveRecord& record) {
  auto operation = std::make_shared<Operation>();
  operation->rank = rank();
  operation->record = record;
  operation->input = std::move(input);
  operation->output = std::move(output);
  clock_->settle();
  group_->issue(operation);
  return std::make_shared<SimWork>(*group_, *clock_, std::move(operation));
}

WorkPtr SimProcessGroup::do_allreduce(Tensor tensor, ReduceOp, const CollectiveRecord& record) {
  return issue({}, std::move(tensor), record);
}

WorkPtr SimProcessGroup::do_broadcast(Tensor tensor, int, const CollectiveRecord& record) {
  return issue({}, std::move(tensor), record);
}

WorkPtr SimProcessGroup::do_allgather(Tensor output, Tensor input, const CollectiveRecord& record) {
  return issue(std::move(input), std::move(output), record);
}

WorkPtr SimProcessGroup::do_barrier(const CollectiveRecord& record) {
  return issue({}, {}, record);
}

void SimProcessGroup::shutdown() {
  clock_->settle();
  group_->shutdown(rank());
}

}  // namespace gradsync
