#include "engine/comm/process_group.hpp"

#include <fmt/format.h>

#include "engine/core/error.hpp"

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

CollectiveRecord ProcessGroup::schedule(CollectiveRecord record) {
  record.issued = clock_->now();
  record.sequence = recorder_->schedule(record);
  return record;
}

WorkPtr ProcessGroup::allreduce(Tensor tensor, ReduceOp op, const CollectiveOptions& options) {
  CollectiveRecord record =
      enter(OpType::kAllreduce, tensor.numel(), tensor.dtype(), tensor.nbytes(), options);
  record.reduce_op = op;
  record = schedule(std::move(record));
  return do_allreduce(std::move(tensor), op, record);
}

WorkPtr ProcessGroup::broadcast(Tensor tensor, int root, const CollectiveOptions& options) {
  if (root < 0 || root >= size_) {
    throw Error(
        ErrorCode::kInternal,
        fmt::format("rank {}: broadcast from root {} in a group of {}", rank_, root, size_));
  }
  CollectiveRecord record =
      enter(OpType::kBroadcast, tensor.numel(), tensor.dtype(), tensor.nbytes(), options);
  record.root = root;
  record = schedule(std::move(record));
  return do_broadcast(std::move(tensor), root, record);
}

WorkPtr ProcessGroup::allgather(Tensor output, Tensor input, const CollectiveOptions& options) {
  if (output.numel() != input.numel() * size_ || output.dtype() != input.dtype()) {
    throw Error(ErrorCode::kInternal,
                fmt::format("rank {}: allgather of {} elements into {}, expected {} x {}", rank_,
                            input.numel(), output.numel(), size_, input.numel()));
  }
  CollectiveRecord record =
      schedule(enter(OpType::kAllgather, input.numel(), input.dtype(), input.nbytes(), options));
  return do_allgather(std::move(output), std::move(input), record);
}

WorkPtr ProcessGroup::barrier(const CollectiveOptions& options) {
  CollectiveRecord record = schedule(enter(OpType::kBarrier, 0, DType::kUInt8, 0, options));
  return do_barrier(record);
}

}  // namespace gradsync
