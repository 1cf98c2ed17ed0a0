#include "gradsync/simulator/collective/sim_process_group.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "gradsync/tensor/rounding.hpp"

namespace gradsync {
namespace {

class SimWork final : public Work {
 public:
  /// `afterwards`: what the rank does with the result, once.
  SimWork(SimGroup& group, SimClock& clock, OperationPtr operation, Seconds afterwards)
      : group_(&group), clock_(&clock), operation_(std::move(operation)), afterwards_(afterwards) {}

  void wait() override {
    clock_->settle();
    group_->wait(*operation_);
    clock_->advance(std::exchange(afterwards_, Seconds(0)));
  }

  bool is_completed() const override {
    clock_->settle();
    return group_->is_over(*operation_);
  }

 private:
  SimGroup* group_;
  SimClock* clock_;
  OperationPtr operation_;
  Seconds afterwards_;
};

/// One copy of all gradients in a bucket; zero for other collectives.
Seconds copy_time(const GpuCosts& costs, const CollectiveRecord& record) {
  if (record.label.bucket < 0 || record.label.what != "gradients") return Seconds(0);
  return costs.copy_time(record.bytes, record.parameters ? record.parameters->size() : 1);
}

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
  operation->clock = clock_;
  const GpuCosts& costs = group_->options().gpu_costs;
  const Seconds copy = copy_time(costs, record);
  clock_->advance(copy);
  clock_->settle();
  group_->issue(operation);
  return std::make_shared<SimWork>(*group_, *clock_, std::move(operation),
                                   costs.copies_back ? copy : Seconds(0));
}

WorkPtr SimProcessGroup::do_allreduce(Tensor tensor, ReduceOp op, const CollectiveRecord& record) {
  if (op == ReduceOp::kAverage) {
    tensor.device().scale(tensor, tensor, round_to(tensor.dtype(), 1.0 / size()));
  }
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

std::shared_ptr<ProcessGroup> SimProcessGroup::do_split(const std::string& name,
                                                        const std::vector<int>& members) {
  SimGroup& subgroup = group_->subgroup(name, members);
  const auto self = std::find(members.begin(), members.end(), rank());
  const auto local = static_cast<int>(self - members.begin());
  clock_->settle();
  subgroup.assemble(local);
  return std::make_shared<SimProcessGroup>(local, subgroup, *clock_, shared_flight_recorder());
}

void SimProcessGroup::stall() {
  clock_->settle();
  const SimGroup::Failure failure = group_->wait_for_failure(rank());
  throw Error(
      failure.code == ErrorCode::kRankDied ? failure.code : ErrorCode::kPeerFailed,
      fmt::format("rank {} had not come back when the job ended: {}", rank(), failure.cause));
}

void SimProcessGroup::shutdown() {
  clock_->settle();
  group_->shutdown(rank());
}

}  // namespace gradsync
