#include "gradsync/ddp/join_protocol.hpp"

#include <fmt/format.h>

#include "gradsync/ddp/control_tensor.hpp"

namespace gradsync {

JoinProtocol::JoinProtocol(ProcessGroup& group, const LoopPosition& position, Device& device,
                           const JoinOptions& options)
    : group_(group), position_(position), device_(device), options_(options) {}

double JoinProtocol::Reduction::wait() const {
  work->wait();
  return static_cast<double>(control_values<float>(tensor).front());
}

JoinProtocol::Reduction JoinProtocol::sum(double value, const char* what) {
  const Tensor tensor =
      control_tensor<float>({static_cast<float>(value)}, DType::kFloat32, device_);
  WorkPtr work = group_.allreduce(tensor, ReduceOp::kSum, position_.options(Phase::kJoin, what));
  return {tensor, std::move(work)};
}

void JoinProtocol::announce_forward() {
  // The reductions of the last iteration are long complete; waiting reports any failure.
  for (const Reduction& reduction : unread_) reduction.wait();
  unread_.clear();
  active_ = sum(1, "ranks with inputs");
  unread_.push_back(active_);
  if (!options_.throw_on_early_termination) return;
  if (sum(0, "ranks out of inputs").wait() != 0) {
    throw EarlyTermination(
        fmt::format("rank {}: detected at least one rank that exhausted its inputs; all ranks stop "
                    "here because throw_on_early_termination is set",
                    group_.rank()));
  }
}

void JoinProtocol::announce_backward(bool reduces) {
  unread_.push_back(sum(reduces ? 1 : 0, "ranks that reduce gradients"));
}

double JoinProtocol::active_ranks() {
  return active_.wait();
}

std::int64_t JoinProtocol::count_active_ranks() {
  const auto active = static_cast<std::int64_t>(sum(0, "ranks with inputs").wait());
  if (active == 0 || !options_.throw_on_early_termination) return active;
  sum(1, "ranks out of inputs").wait();
  throw EarlyTermination(fmt::format("rank {} exhausted all of its inputs", group_.rank()));
}

bool JoinProtocol::others_reduce() {
  return sum(0, "ranks that reduce gradients").wait() != 0;
}

int JoinProtocol::highest_rank(bool candidate) {
  const Tensor tensor =
      control_tensor<std::int64_t>({candidate ? group_.rank() : -1}, DType::kInt64, device_);
  group_.allreduce(tensor, ReduceOp::kMax, position_.options(Phase::kJoin, "highest rank"))->wait();
  const std::int64_t rank = control_values<std::int64_t>(tensor).front();
  if (rank < 0) {
    throw Error(ErrorCode::kDesync,
                fmt::format("rank {}: join: no rank has the valid state", group_.rank()));
  }
  return static_cast<int>(rank);
}

}  // namespace gradsync
