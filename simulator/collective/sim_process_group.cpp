#include "gradsync/simulator/collective/sim_process_group.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "gradsync/tensor/rounding.hpp"

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

WorkPtr SimProcessGroup::issue(Tensor input, Tensor output, const CollectiveRecord& record,
                               std::function<void()> take_result) {
  auto operation = std::make_shared<Operation>();
  operation->rank = rank();
  operation->record = record;
  operation->input = std::move(input);
  operation->output = std::move(output);
  operation->take_result = std::move(take_result);
  operation->clock = clock_;
  clock_->settle();
  group_->issue(operation);
  return std::make_shared<SimWork>(*group_, *clock_, std::move(operation));
}

/// Every input of an average is scaled before the sum.
void SimProcessGroup::scale_for(ReduceOp op, Tensor& tensor) const {
  if (op != ReduceOp::kAverage) return;
  tensor.device().scale(tensor, tensor, round_to(tensor.dtype(), 1.0 / size()));
}

WorkPtr SimProcessGroup::do_allreduce(Tensor tensor, ReduceOp op, const CollectiveRecord& record) {
  scale_for(op, tensor);
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

WorkPtr SimProcessGroup::do_reduce(Tensor tensor, int root, ReduceOp op,
                                   const CollectiveRecord& record) {
  // The other ranks keep their tensors, and the sums pass through a copy.
  Tensor sums = rank() == root ? tensor : tensor.clone();
  scale_for(op, sums);
  return issue({}, std::move(sums), record);
}

WorkPtr SimProcessGroup::do_reduce_scatter(Tensor output, Tensor input, ReduceOp op,
                                           const CollectiveRecord& record) {
  Tensor sums = input.clone();
  scale_for(op, sums);
  const auto take = [output, sums, rank = rank()]() mutable {
    if (sums.data() == nullptr || output.data() == nullptr) return;
    std::memcpy(output.data(), sums.data() + rank * output.nbytes(),
                static_cast<std::size_t>(output.nbytes()));
  };
  return issue({}, sums, record, take);
}

WorkPtr SimProcessGroup::do_alltoall(Tensor output, Tensor input, const CollectiveRecord& record) {
  return issue(std::move(input), std::move(output), record);
}

WorkPtr SimProcessGroup::do_send(Tensor tensor, int, const CollectiveRecord& record) {
  return issue(std::move(tensor), {}, record);
}

WorkPtr SimProcessGroup::do_recv(Tensor tensor, int, const CollectiveRecord& record) {
  return issue({}, std::move(tensor), record);
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
