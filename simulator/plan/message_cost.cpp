#include "gradsync/simulator/plan/message_cost.hpp"

#include "gradsync/simulator/plan/planner.hpp"

namespace gradsync {
namespace {

/// NCCL sends messages of up to this size with LL (NCCL_P2P_LL_THRESHOLD).
constexpr Bytes kLlMessage = 16384;

}  // namespace

MessageCost Planner::message_cost(const CollectiveRecord& record) const {
  MessageCost cost;
  cost.hops = hops_;
  if (!model_) return cost;
  const Bytes parts = record.op == OpType::kAlltoall ? hops_.layout.ranks : 1;
  const nccl::Protocol protocol =
      record.bytes / parts <= kLlMessage ? nccl::Protocol::kLl : nccl::Protocol::kSimple;
  cost.base = model_->base_latency(nccl::Algorithm::kRing, protocol);
  cost.wire_factor = nccl::Model::wire_factor(protocol);
  cost.hops = nccl_hops(nccl::Algorithm::kRing, protocol, protocol == nccl::Protocol::kSimple);
  return cost;
}

PlanPhase gather_phase(const Hops& hops, int root, double share) {
  PlanPhase phase;
  phase.steps = 1;
  for (int rank = 0; rank < hops.layout.ranks; ++rank) {
    if (rank != root) phase.edges.push_back({rank, root, share, hops.latency(rank, root)});
  }
  return phase;
}

}  // namespace gradsync
