#include "simulator/collective.hpp"

#include <cstring>

#include "engine/core/error.hpp"
#include "simulator/flow_ring.hpp"
#include "simulator/message_ring.hpp"
#include "simulator/tree_collectives.hpp"

namespace gradsync {
namespace {

/// One rank, or nothing to send: no message, and no waiting for one another, as in Gloo.
class LocalCollective final : public Collective {
 public:
  explicit LocalCollective(const Context& context) : Collective(context) {}

 protected:
  void on_join(int rank) override { complete(rank); }
};

}  // namespace

Collective::Collective(Context context)
    : context_(std::move(context)), operations_(index(context_.ranks)) {}

void Collective::join(OperationPtr operation) {
  const int rank = operation->rank;
  const Tensor& slice = operation->input;
  if (slice.defined() &&
      slice.data() != nullptr) {  // all-gather: this rank's own part of the result
    const auto bytes = static_cast<std::size_t>(slice.nbytes());
    std::memmove(operation->output.data() + index(rank) * bytes, slice.data(), bytes);
  }
  operations_[index(rank)] = std::move(operation);
  on_join(rank);
}

void Collective::complete(int rank) {
  context_.completed(operation(rank));
}

void Collective::send(int from, int to, Bytes bytes, std::function<void()> arrived) {
  // The message keeps its collective alive.
  network().send(from, to, bytes, [self = shared_from_this(), run = std::move(arrived)] { run(); });
}

void Collective::after(Seconds delay, std::function<void()> event) {
  network().after(delay, [self = shared_from_this(), run = std::move(event)] { run(); });
}

std::shared_ptr<Collective> make_collective(const Collective::Context& context,
                                            const CollectiveRecord& first, bool flow_fidelity) {
  const bool local = context.ranks == 1 || (first.op != OpType::kBarrier && first.bytes == 0);
  if (local) return std::make_shared<LocalCollective>(context);
  switch (first.op) {
    case OpType::kAllreduce:
      if (flow_fidelity) return std::make_shared<FlowAllreduce>(context, first);
      return std::make_shared<MessageAllreduce>(context, first);
    case OpType::kAllgather:
      if (flow_fidelity) return std::make_shared<FlowAllgather>(context, first);
      return std::make_shared<MessageAllgather>(context, first);
    case OpType::kBroadcast:
      return std::make_shared<TreeBroadcast>(context, first);
    case OpType::kBarrier:
      return std::make_shared<DisseminationBarrier>(context);
  }
  throw Error(ErrorCode::kInternal, "the simulator does not know this collective");
}

}  // namespace gradsync
