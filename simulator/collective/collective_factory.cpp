#include "gradsync/simulator/collective/collective_factory.hpp"

#include "gradsync/core/error.hpp"
#include "gradsync/simulator/collective/flow_ring.hpp"
#include "gradsync/simulator/collective/message_ring.hpp"
#include "gradsync/simulator/collective/pairwise_exchange.hpp"
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
    default:
      break;
  }
  throw Error(ErrorCode::kInternal, "the simulator does not know this collective");
}

}  // namespace

CollectiveFactory::CollectiveFactory(const ClusterSpec& cluster,
                                     const CommunicationSpec& communication, int ranks,
                                     Fidelity fidelity, Links* links, WireLatency wire)
    : ranks_(ranks),
      fidelity_(fidelity),
      has_message_lanes_(cluster.library == ClusterSpec::Library::kGloo),
      per_operation_(cluster.software.per_operation),
      planner_(cluster, communication, ranks, std::move(wire)) {
  if (fidelity == Fidelity::kAnalytic) timer_.emplace(*links);
}

std::shared_ptr<Collective> CollectiveFactory::make(const Collective::Context& context,
                                                    const CollectiveRecord& first) {
  const bool is_exchange = first.op == OpType::kAlltoall || is_point_to_point(first.op);
  // A rank may send nothing in an alltoall in which others do, and a message has two ends.
  if (ranks_ == 1 || (first.op != OpType::kBarrier && !is_exchange && first.bytes == 0)) {
    return std::make_shared<LocalCollective>(context);
  }
  if (is_exchange) {
    const bool timed = fidelity_ == Fidelity::kAnalytic;
    return std::make_shared<PairwiseExchange>(context, first, planner_.message_cost(first),
                                              timed ? &*timer_ : nullptr, network_free_);
  }
  if (has_message_lanes_ && first.op == OpType::kReduceScatter) {
    // Gloo has none: it is an all-reduce of which each rank keeps its slice.
    CollectiveRecord allreduce = first;
    allreduce.op = OpType::kAllreduce;
    return make_planned(context, allreduce);
  }
  return make_planned(context, first);
}

std::shared_ptr<Collective> CollectiveFactory::make_planned(const Collective::Context& context,
                                                            const CollectiveRecord& first) {
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
