// The operations beside those of data parallelism, and the checks of arguments of all of them.

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "gradsync/comm/process_group.hpp"
#include "gradsync/core/error.hpp"

namespace gradsync {
namespace {

std::int64_t sum_of(const std::vector<std::int64_t>& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
}

bool overlap(const Tensor& a, const Tensor& b) {
  if (a.data() == nullptr || b.data() == nullptr) return false;
  const std::less<const std::byte*> before;
  return before(a.data(), b.data() + b.nbytes()) && before(b.data(), a.data() + a.nbytes());
}

/// The number of elements in a row of the first dimension.
std::int64_t row_of(const Tensor& tensor) {
  const std::int64_t rows = tensor.shape().empty() ? 1 : tensor.shape().front();
  return rows == 0 ? 0 : tensor.numel() / rows;
}

std::vector<std::int64_t> times(std::vector<std::int64_t> sizes, std::int64_t factor) {
  for (std::int64_t& size : sizes) size *= factor;
  return sizes;
}

}  // namespace

void ProcessGroup::misuse(const std::string& what) const {
  throw Error(ErrorCode::kMisuse, fmt::format("rank {}: {}", rank_, what));
}

void ProcessGroup::check_reduction(OpType op, ReduceOp reduce_op, DType dtype) const {
  if (reduce_op != ReduceOp::kAverage || is_floating_point(dtype)) return;
  misuse(fmt::format("{} cannot average {}; pass a floating-point tensor, or sum", to_string(op),
                     to_string(dtype)));
}

void ProcessGroup::check_root(OpType op, int root) const {
  if (root >= 0 && root < size_) return;
  misuse(fmt::format("{} with root {} in {}, whose ranks are 0 to {}", to_string(op), root, name_,
                     size_ - 1));
}

void ProcessGroup::check_parts(OpType op, const Tensor& whole, const Tensor& part) const {
  const bool gathers = op == OpType::kAllgather;
  const Tensor& output = gathers ? whole : part;
  const Tensor& input = gathers ? part : whole;
  if (whole.numel() != part.numel() * size_ || whole.dtype() != part.dtype()) {
    misuse(
        fmt::format("{} of {} {} elements into {} {}; the {} must have {} times the elements of "
                    "the {}, and the same dtype",
                    to_string(op), input.numel(), to_string(input.dtype()), output.numel(),
                    to_string(output.dtype()), gathers ? "output" : "input", size_,
                    gathers ? "input" : "output"));
  }
  if (overlap(whole, part) && part.data() != whole.data() + rank_ * part.nbytes()) {
    misuse(fmt::format("{}: the tensors overlap; in place, the {} is slice {} of the {}",
                       to_string(op), gathers ? "input" : "output", rank_,
                       gathers ? "output" : "input"));
  }
}

void ProcessGroup::check_peer(OpType op, int peer) const {
  const char* direction = op == OpType::kSend ? "to" : "from";
  if (peer < 0 || peer >= size_) {
    misuse(fmt::format("{} {} rank {} in {}, whose ranks are 0 to {}", to_string(op), direction,
                       peer, name_, size_ - 1));
  }
  if (peer == rank_) {
    misuse(fmt::format("{} {} rank {}, which is this rank; copy the tensor instead", to_string(op),
                       direction, peer));
  }
}

WorkPtr ProcessGroup::reduce(Tensor tensor, int root, ReduceOp op,
                             const CollectiveOptions& options) {
  check_reduction(OpType::kReduce, op, tensor.dtype());
  check_root(OpType::kReduce, root);
  CollectiveRecord record = enter(OpType::kReduce, tensor, options);
  record.reduce_op = op;
  record.root = root;
  record = schedule(std::move(record));
  return do_reduce(std::move(tensor), root, op, record);
}

WorkPtr ProcessGroup::reduce_scatter(Tensor output, Tensor input, ReduceOp op,
                                     const CollectiveOptions& options) {
  check_reduction(OpType::kReduceScatter, op, input.dtype());
  check_parts(OpType::kReduceScatter, input, output);
  CollectiveRecord record = enter(OpType::kReduceScatter, input, options);
  record.reduce_op = op;
  record = schedule(std::move(record));
  return do_reduce_scatter(std::move(output), std::move(input), op, record);
}

WorkPtr ProcessGroup::alltoall(Tensor output, Tensor input, const CollectiveOptions& options) {
  const auto split = [this](const Tensor& tensor, const char* name) {
    const std::int64_t rows = tensor.shape().empty() ? 1 : tensor.shape().front();
    if (rows % size_ != 0) {
      misuse(
          fmt::format("alltoall: the first dimension of the {} is {}, which {} ranks cannot "
                      "share equally; pass split sizes",
                      name, rows, size_));
    }
    return std::vector<std::int64_t>(static_cast<std::size_t>(size_), rows / size_);
  };
  std::vector<std::int64_t> of_output = split(output, "output"), of_input = split(input, "input");
  return alltoall(std::move(output), std::move(input), std::move(of_output), std::move(of_input),
                  options);
}

WorkPtr ProcessGroup::alltoall(Tensor output, Tensor input,
                               std::vector<std::int64_t> output_split_sizes,
                               std::vector<std::int64_t> input_split_sizes,
                               const CollectiveOptions& options) {
  const auto check = [this](const std::vector<std::int64_t>& sizes, const Tensor& tensor,
                            const char* name) {
    const std::int64_t rows = tensor.shape().empty() ? 1 : tensor.shape().front();
    const bool positive = std::ranges::all_of(sizes, [](std::int64_t size) { return size >= 0; });
    if (std::ssize(sizes) == size_ && positive && sum_of(sizes) == rows) return;
    misuse(
        fmt::format("alltoall: {}_split_sizes needs {} sizes of 0 or more whose sum is {}, the "
                    "first dimension of the {}; it has {} with the sum {}",
                    name, size_, rows, name, sizes.size(), sum_of(sizes)));
  };
  check(output_split_sizes, output, "output");
  check(input_split_sizes, input, "input");
  const std::int64_t row = std::max(row_of(input), row_of(output));
  const bool same_rows = row_of(input) * row_of(output) == 0 || row_of(input) == row_of(output);
  if (input.dtype() != output.dtype() || !same_rows) {
    misuse(
        fmt::format("alltoall of {} {} into {} {}: dtype, and all dimensions but the first, "
                    "must be equal",
                    to_string(input.dtype()), to_string(input.shape()), to_string(output.dtype()),
                    to_string(output.shape())));
  }
  const auto own = static_cast<std::size_t>(rank_);
  if (input_split_sizes[own] != output_split_sizes[own]) {
    misuse(
        fmt::format("alltoall: the sizes of the part of this rank for itself differ: {} in "
                    "input_split_sizes, {} in output_split_sizes",
                    input_split_sizes[own], output_split_sizes[own]));
  }
  if (overlap(input, output)) misuse("alltoall is not done in place; pass another output");
  CollectiveRecord record = enter(OpType::kAlltoall, input, options);
  record.splits = std::make_shared<const AlltoallSplits>(AlltoallSplits{
      times(std::move(input_split_sizes), row), times(std::move(output_split_sizes), row)});
  record = schedule(std::move(record));
  return do_alltoall(std::move(output), std::move(input), record);
}

CollectiveRecord ProcessGroup::schedule_message(OpType op, const Tensor& tensor, int from, int to,
                                                const CollectiveOptions& options) {
  CollectiveRecord record = enter(op, tensor, options);
  record.group = channel_name(name_, from, to);
  record.root = op == OpType::kSend ? to : from;
  return schedule(std::move(record));
}

WorkPtr ProcessGroup::send(Tensor tensor, int dst, const CollectiveOptions& options) {
  check_peer(OpType::kSend, dst);
  const CollectiveRecord record = schedule_message(OpType::kSend, tensor, rank_, dst, options);
  return do_send(std::move(tensor), dst, record);
}

WorkPtr ProcessGroup::recv(Tensor tensor, int src, const CollectiveOptions& options) {
  check_peer(OpType::kRecv, src);
  const CollectiveRecord record = schedule_message(OpType::kRecv, tensor, src, rank_, options);
  return do_recv(std::move(tensor), src, record);
}

void ProcessGroup::unsupported(const CollectiveRecord& record) {
  const Error error(ErrorCode::kUsage, fmt::format("rank {}: {} has no {}", rank_, backend_name(),
                                                   to_string(record.op)));
  recorder_->fail(record.group, record.sequence, clock_->now(), error.what());
  throw Error(error);
}

WorkPtr ProcessGroup::do_reduce(Tensor, int, ReduceOp, const CollectiveRecord& record) {
  unsupported(record);
}
WorkPtr ProcessGroup::do_reduce_scatter(Tensor, Tensor, ReduceOp, const CollectiveRecord& record) {
  unsupported(record);
}
WorkPtr ProcessGroup::do_alltoall(Tensor, Tensor, const CollectiveRecord& record) {
  unsupported(record);
}
WorkPtr ProcessGroup::do_send(Tensor, int, const CollectiveRecord& record) {
  unsupported(record);
}
WorkPtr ProcessGroup::do_recv(Tensor, int, const CollectiveRecord& record) {
  unsupported(record);
}

}  // namespace gradsync
