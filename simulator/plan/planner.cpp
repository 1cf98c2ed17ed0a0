#include "gradsync/simulator/plan/planner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <numeric>

#include "gradsync/comm/ring_plan.hpp"
#include "gradsync/simulator/plan/nccl_pace.hpp"

namespace gradsync {
namespace {

using Algorithm = CommunicationSpec::Algorithm;

std::vector<int> all_ranks(int ranks) {
  std::vector<int> result(static_cast<std::size_t>(ranks));
  std::iota(result.begin(), result.end(), 0);
  return result;
}

/// Gloo's bcube groups: factors of two, and the rest in one step.
std::vector<int> bcube_groups(int ranks) {
  std::vector<int> groups;
  while (ranks > 1 && ranks % 2 == 0) {
    groups.push_back(2);
    ranks /= 2;
  }
  if (ranks > 1) groups.push_back(ranks);
  return groups;
}

/// Ranks beyond the largest power of two first send their data to a partner and receive the result
/// last.
std::vector<PlanPhase> halving_doubling_phases(const Hops& hops) {
  const int ranks = hops.layout.ranks;
  const auto power = static_cast<int>(std::bit_floor(static_cast<unsigned>(ranks)));
  const auto exchange = [&](bool back) {
    PlanPhase phase;
    phase.steps = 1;
    for (int extra = power; extra < ranks; ++extra) {
      const int partner = extra - power;
      const int from = back ? partner : extra;
      const int to = back ? extra : partner;
      phase.edges.push_back({from, to, 1, hops.latency(from, to), {}});
    }
    return phase;
  };
  std::vector<PlanPhase> phases = bcube_phases(hops, all_ranks(power), bcube_groups(power));
  if (power < ranks) {
    phases.insert(phases.begin(), exchange(false));
    phases.push_back(exchange(true));
  }
  return phases;
}

}  // namespace

Planner::Planner(const ClusterSpec& cluster, const CommunicationSpec& communication, int ranks,
                 WireLatency wire)
    : cluster_(cluster), communication_(communication) {
  // A platform file does not say which of its hosts share a machine.
  const auto per_node = cluster.platform_file.empty() ? cluster.gpus_per_node : 1;
  cluster_.gpus_per_node = per_node;
  hops_.layout = {ranks, static_cast<int>(std::min<std::int64_t>(per_node, ranks)),
                  cluster.node_topology == ClusterSpec::NodeTopology::kCubeMesh,
                  cluster.node_topology == ClusterSpec::NodeTopology::kPcieTree
                      ? static_cast<int>(cluster.pcie_gpus_per_switch)
                      : 0};
  hops_.wire = std::move(wire);
  if (cluster.library != ClusterSpec::Library::kGloo) {
    model_.emplace(cluster_, ranks);
    pace_ = nccl::pace(cluster_);
  }
}

std::shared_ptr<const Plan> Planner::plan(const CollectiveRecord& record, bool bit_exact) {
  return model_ ? nccl_plan(record) : gloo_plan(record, bit_exact);
}

std::vector<std::vector<int>> Planner::node_members() const {
  std::vector<std::vector<int>> nodes;
  for (int node = 0; node < hops_.layout.nodes(); ++node) {
    nodes.push_back(hops_.layout.members(node, 0));
  }
  return nodes;
}

std::shared_ptr<const Plan> Planner::hierarchical_plan(const Hops& hops) {
  auto plan = std::make_shared<Plan>();
  plan->name = "hierarchical";
  std::vector<PlanPhase> phases;
  plan->chunk_bytes = nccl::ring_chunk(nccl::Protocol::kSimple);
  std::vector<int> heads;
  for (const std::vector<int>& members : node_members()) heads.push_back(members.front());
  // Each node's chain carries all bytes; they are not divided over the nodes.
  const auto nodes = static_cast<double>(heads.size());
  if (hops.layout.per_node > 1) {
    phases.push_back(reduce_chain_phase(hops, node_members(), nodes));
  }
  if (heads.size() > 1) {
    phases.push_back(ring_phase(hops, {heads}, 2 * (static_cast<int>(heads.size()) - 1),
                                2 * (nodes - 1) / nodes));
  }
  if (hops.layout.per_node > 1) {
    phases.push_back(chain_phase(hops, node_members(), nodes));
  }
  plan->shared_phases = std::make_shared<const std::vector<PlanPhase>>(std::move(phases));
  return plan;
}

std::shared_ptr<const Plan> Planner::gloo_plan(const CollectiveRecord& record, bool bit_exact) {
  const Algorithm algorithm = communication_.algorithm;
  const bool allreduce = record.op == OpType::kAllreduce;
  const bool ring = algorithm == Algorithm::kAuto || algorithm == Algorithm::kRing;
  const bool has_own_class = record.op != OpType::kReduce && (!allreduce || ring);
  if (bit_exact && has_own_class) return nullptr;
  const std::string key = fmt::format("{} {} {}", to_string(record.op), record.bytes, record.root);
  std::shared_ptr<const Plan>& known = plans_[key];
  if (known != nullptr) return known;
  if (allreduce && algorithm == Algorithm::kHierarchical) return known = hierarchical_plan(hops_);

  const int n = hops_.layout.ranks;
  auto plan = std::make_shared<Plan>();
  std::vector<PlanPhase> phases;
  const auto ring_of = [&](int steps, double step_bytes) {
    PlanPhase phase = ring_phase(hops_, {all_ranks(n)}, steps,
                                 steps * step_bytes / static_cast<double>(record.bytes));
    phase.in_step = true;
    return phase;
  };
  switch (record.op) {
    case OpType::kAllreduce:
      if (algorithm == Algorithm::kBcube) {
        plan->name = "bcube";
        phases = bcube_phases(hops_, all_ranks(n), bcube_groups(n));
      } else if (algorithm == Algorithm::kHalvingDoubling) {
        plan->name = "halving-doubling";
        phases = halving_doubling_phases(hops_);
      } else {
        plan->name = "ring";
        plan->gloo_ring_sums = true;
        const RingPlan cuts(record.bytes, element_size(record.dtype), n);
        phases = {ring_of(2 * (n - 1), static_cast<double>(cuts.chunk_bytes()))};
      }
      break;
    case OpType::kAllgather:
      plan->name = "ring";
      phases = {ring_of(n - 1, static_cast<double>(record.bytes))};
      break;
    case OpType::kBroadcast:
      plan->name = "binomial tree";
      phases = binomial_phases(hops_, record.root);
      break;
    case OpType::kReduce: {
      plan->name = "ring, gather";
      plan->gloo_ring_sums = true;
      const RingPlan cuts(record.bytes, element_size(record.dtype), n);
      const auto chunk = static_cast<double>(cuts.chunk_bytes());
      phases = {ring_of(n - 1, chunk),
                gather_phase(hops_, record.root, chunk / static_cast<double>(record.bytes))};
      break;
    }
    case OpType::kBarrier:
      plan->name = "dissemination";
      phases = dissemination_phases(hops_);
      break;
    default:
      throw Error(ErrorCode::kInternal, "the simulator does not know this operation");
  }
  plan->shared_phases = std::make_shared<const std::vector<PlanPhase>>(std::move(phases));
  return known = plan;
}

}  // namespace gradsync
