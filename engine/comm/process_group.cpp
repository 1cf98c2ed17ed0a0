#include "gradsync/comm/process_group.hpp"

#include <fmt/format.h>

#include "gradsync/core/error.hpp"

namespace gradsync {

ProcessGroup::ProcessGroup(int rank, int size, std::string name, Clock& clock,
                           std::shared_ptr<FlightRecorder> recorder)
    : rank_(rank),
      size_(size),
      name_(std::move(name)),
      clock_(&clock),
      recorder_(std::move(recorder)) {}

CollectiveRecord ProcessGroup::enter(OpType op, std::int64_t elements, DType dtype, Bytes bytes,
                                     const CollectiveOptions& options) {
  CollectiveRecord record;
  record.group = name_;
  record.op = op;
  record.elements = elements;
  record.dtype = dtype;
  record.bytes = bytes;
  record.label = options.label;
  record.parameters = options.parameters;
  return record;
}

CollectiveRecord ProcessGroup::enter(OpType op, const Tensor& tensor,
                                     const CollectiveOptions& options) {
  return enter(op, tensor.numel(), tensor.dtype(), tensor.nbytes(), options);
}

CollectiveRecord ProcessGroup::schedule(CollectiveRecord record) {
  record.issued = clock_->now();
  record.sequence = recorder_->schedule(record);
  record.label_must_match = detail_;
  return record;
}

void ProcessGroup::stall() {
  throw Error(ErrorCode::kUsage,
              fmt::format("rank {}: a rank cannot be stalled on {}; use sim or gloo", rank_,
                          backend_name()));
}

std::shared_ptr<ProcessGroup> ProcessGroup::do_split(const std::string& name,
                                                     const std::vector<int>& /*members*/) {
  throw Error(ErrorCode::kUsage, fmt::format("rank {}: {} has no groups beside the default one, so "
                                             "no \"{}\"; use sim or gloo",
                                             rank_, backend_name(), name));
}

std::shared_ptr<ProcessGroup> ProcessGroup::split(const std::string& name,
                                                  const std::vector<int>& members) {
  CollectiveRecord record;
  record.group = name;
  record.op = OpType::kBarrier;
  record.dtype = DType::kUInt8;
  record.label.what = "creation of the group";
  record = schedule(std::move(record));
  recorder_->start(name, record.sequence, clock_->now());
  std::shared_ptr<ProcessGroup> group;
  try {
    group = do_split(name, members);
  } catch (const std::exception& error) {
    recorder_->fail(name, record.sequence, clock_->now(), error.what());
    throw;
  }
  recorder_->complete(name, record.sequence, clock_->now());
  group->set_detail(detail_);
  return group;
}

WorkPtr ProcessGroup::allreduce(Tensor tensor, ReduceOp op, const CollectiveOptions& options) {
  check_reduction(OpType::kAllreduce, op, tensor.dtype());
  CollectiveRecord record = enter(OpType::kAllreduce, tensor, options);
  record.reduce_op = op;
  record = schedule(std::move(record));
  return do_allreduce(std::move(tensor), op, record);
}

WorkPtr ProcessGroup::broadcast(Tensor tensor, int root, const CollectiveOptions& options) {
  check_root(OpType::kBroadcast, root);
  CollectiveRecord record = enter(OpType::kBroadcast, tensor, options);
  record.root = root;
  record = schedule(std::move(record));
  return do_broadcast(std::move(tensor), root, record);
}

WorkPtr ProcessGroup::allgather(Tensor output, Tensor input, const CollectiveOptions& options) {
  check_parts(OpType::kAllgather, output, input);
  CollectiveRecord record = schedule(enter(OpType::kAllgather, input, options));
  return do_allgather(std::move(output), std::move(input), record);
}

WorkPtr ProcessGroup::barrier(const CollectiveOptions& options) {
  CollectiveRecord record = schedule(enter(OpType::kBarrier, 0, DType::kUInt8, 0, options));
  return do_barrier(record);
}

}  // namespace gradsync
