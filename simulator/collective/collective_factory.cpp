#include "gradsync/simulator/collective/collective_factory.hpp"

#include "gradsync/core/error.hpp"
#include "gradsync/simulator/collective/flow_ring.hpp"
#include "gradsync/simulator/collective/message_ring.hpp"
#include "gradsync/simulator/collective/plan_collective.hpp"
#include "gradsync/simulator/collective/tree_collectives.hpp"

namespace gradsync {
namespace {

/// One rank, or nothing to send: no messages, and no waiting for each other, as in Gloo.
class LocalCollective final : public Collective {
 public:
  explicit LocalCollective(const Context& context) : Collective(context) {}

 protected:
  void on_join(int rank) override { complete(rank); }
};

/// Gloo's own algorithms, message by message (or hop by hop), bit-identical.
std::shared_ptr<Collective> make_gloo(const Collective::Context& context,
                                      const CollectiveRecord& first, bool flows) {
  switch (first.op) {
    case OpType::kAllreduce:
      if (flows) return std::make_shared<FlowAllreduce>(context, first);
      return std::make_shared<MessageAllreduce>(context, first);
    case OpType::kAllgather:
      if (flows) return std::make_shared<FlowAllgather>(context, first);
      return std::make_shared<MessageAllgather>(context, first);
    case OpType::kBroadcast:
      return std::make_shared<TreeBroadcast>(context, first);
    case OpType::kBarrier:
      return std::make_shared<DisseminationBarrier>(context);
  }
  throw Error(ErrorCode::kInternal, "the simulator does not know this collective");
}

}  // namespace

CollectiveFactory::CollectiveFactory(const ClusterSpec& cluster,
                                     const CommunicationSpec& communication, int ranks,
                                     Fidelity fidelity, Links* links, WireLatency wire)
    : ranks_(ranks),
      fidelity_(fidelity),
      per_operation_(cluster.software.per_operation),
      planner_(cluster, communication, ranks, std::move(wire)) {
  if (fidelity == Fidelity::kAnalytic) timer_.emplace(*links);
}

std::shared_ptr<Collective> CollectiveFactory::make(const Collective::Context& context,
                                                    const CollectiveRecord& first) {
  if (ranks_ == 1 || (first.op != OpType::kBarrier && first.bytes == 0)) {
    return std::make_shared<LocalCollective>(context);
  }
  std::shared_ptr<const Plan> plan = planner_.plan(first, fidelity_ != Fidelity::kAnalytic);
  if (plan == nullptr) return make_gloo(context, first, fidelity_ == Fidelity::kFlow);
  switch (fidelity_) {
    case Fidelity::kFlow:
      return std::make_shared<FlowCollective>(context, std::move(plan), first);
    case Fidelity::kAnalytic: {
      const Seconds duration = timer_->duration(plan, first.bytes);
      return std::make_shared<TimedCollective>(context, std::move(plan), first, duration,
                                               network_free_);
    }
    case Fidelity::kAuto:
    case Fidelity::kMessage:
      break;
  }
  return std::make_shared<MessageCollective>(context, std::move(plan), first);
}

}  // namespace gradsync
