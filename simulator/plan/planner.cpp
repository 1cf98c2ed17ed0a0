#include "gradsync/simulator/plan/planner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <numeric>

#include "gradsync/comm/ring_plan.hpp"
#include "gradsync/core/error.hpp"
#include "gradsync/simulator/platform/cube_mesh.hpp"

namespace gradsync {
namespace {

using Algorithm = CommunicationSpec::Algorithm;
using Protocol = CommunicationSpec::Protocol;

std::optional<nccl::Algorithm> nccl_algorithm(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::kRing:
      return nccl::Algorithm::kRing;
    case Algorithm::kTree:
      return nccl::Algorithm::kTree;
    case Algorithm::kNvls:
      return nccl::Algorithm::kNvls;
    case Algorithm::kNvlsTree:
      return nccl::Algorithm::kNvlsTree;
    default:
      return std::nullopt;
  }
}

std::optional<nccl::Protocol> nccl_protocol(Protocol protocol) {
  switch (protocol) {
    case Protocol::kLl:
      return nccl::Protocol::kLl;
    case Protocol::kLl128:
      return nccl::Protocol::kLl128;
    case Protocol::kSimple:
      return nccl::Protocol::kSimple;
    case Protocol::kAuto:
      break;
  }
  return std::nullopt;
}

/// The data that a channel forwards at once, in bytes (src/include/device.h, enqueue.cc): half of
/// the buffer's eight steps for a ring with Simple, one step for a tree.
Bytes channel_chunk(nccl::Protocol protocol) {
  switch (protocol) {
    case nccl::Protocol::kLl:
      return 32 * 1024;
    case nccl::Protocol::kLl128:
      return 576'000;
    case nccl::Protocol::kSimple:
      break;
  }
  return 512 * 1024;
}

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
                  cluster.node_topology == ClusterSpec::NodeTopology::kCubeMesh};
  hops_.wire = std::move(wire);
  if (cluster.library == ClusterSpec::Library::kNccl) model_.emplace(cluster_, ranks);
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
  plan->chunk_bytes = channel_chunk(nccl::Protocol::kSimple);
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

Hops Planner::nccl_hops(nccl::Algorithm algorithm, nccl::Protocol protocol) const {
  Hops hops = hops_;
  const double scale = cluster_.software.hop_latency_scale;
  hops.inside = scale * model_->hop_latency(algorithm, protocol, false);
  hops.between = scale * model_->hop_latency(algorithm, protocol, true);
  return hops;
}

std::vector<std::vector<int>> Planner::rings() const {
  const Layout& layout = hops_.layout;
  std::vector<std::vector<int>> orders;
  if (layout.nodes() == 1) {
    if (!layout.cube_mesh || layout.ranks != cube_mesh::kGpus) return {layout.members(0, 0)};
    for (const auto& ring : cube_mesh::rings()) {
      orders.emplace_back(ring.begin(), ring.end());
      orders.emplace_back(ring.rbegin(), ring.rend());
    }
    return orders;
  }
  const int rails = static_cast<int>(std::min(cluster_.nics_per_node, cluster_.gpus_per_node));
  for (int rail = 0; rail < rails; ++rail) {
    // The GPUs of a rail enter the node through its adapter, so each ring starts at a different
    // GPU.
    const int rotation = rail * layout.per_node / rails;
    std::vector<int> order;
    for (int node = 0; node < layout.nodes(); ++node) {
      const std::vector<int> members = layout.members(node, rotation);
      order.insert(order.end(), members.begin(), members.end());
    }
    orders.push_back(std::move(order));
  }
  return orders;
}

nccl::Candidate Planner::choose(const CollectiveRecord& record) const {
  if (nccl::is_ring_only(record.op)) {
    return model_->choose_ring(record.bytes, record.op);
  }
  const auto algorithm = nccl_algorithm(communication_.algorithm);
  const auto protocol = nccl_protocol(communication_.protocol);
  return model_->choose(std::max<Bytes>(record.bytes, 4), algorithm ? &*algorithm : nullptr,
                        protocol ? &*protocol : nullptr);
}

std::shared_ptr<const Plan> Planner::nccl_plan(const CollectiveRecord& record) {
  using nccl::to_string;
  const bool allreduce = record.op == OpType::kAllreduce || record.op == OpType::kBarrier;
  if (allreduce && communication_.algorithm == Algorithm::kHierarchical) {
    std::shared_ptr<const Plan>& known = plans_["hierarchical"];
    if (known == nullptr) {
      known = hierarchical_plan(nccl_hops(nccl::Algorithm::kRing, nccl::Protocol::kSimple));
    }
    return known;
  }
  const nccl::Candidate chosen = choose(record);
  const std::string name =
      fmt::format("{} {}, {} channel{}", to_string(chosen.algorithm), to_string(chosen.protocol),
                  chosen.channels, chosen.channels == 1 ? "" : "s");
  const std::string op = gradsync::to_string(record.op);
  const std::string subject = fmt::format("{} of {} bytes: {}", op, record.bytes, name);
  if (!explained_[subject]) {
    explained_[subject] = true;
    const bool rated = record.op == OpType::kAllreduce;
    explanations_.push_back(rated ? subject + "\n" + nccl::explain(*model_, record.bytes, chosen)
                                  : subject + "\n");
  }
  const std::string kind = allreduce ? "allreduce" : op;
  std::shared_ptr<const Plan>& known = plans_[fmt::format("{} {} {}", kind, name, record.root)];
  if (known != nullptr) return known;
  auto plan = std::make_shared<Plan>();
  plan->name = name;
  plan->base = model_->base_latency(chosen.algorithm, chosen.protocol);
  if (chosen.algorithm == nccl::Algorithm::kNvlsTree) {  // the switch's part of each direction
    plan->base += nccl_hops(chosen.algorithm, chosen.protocol).inside;
  }
  plan->wire_factor = nccl::Model::wire_factor(chosen.protocol);
  plan->limit = chosen.bandwidth;
  plan->chunk_bytes = channel_chunk(chosen.protocol) * chosen.channels;
  // Plans that differ only in their channels have the same edges, and there may be millions.
  auto& phases = phases_[fmt::format("{} {} {} {}", kind, to_string(chosen.algorithm),
                                     to_string(chosen.protocol), record.root)];
  if (phases == nullptr) {
    phases = std::make_shared<const std::vector<PlanPhase>>(
        1, nccl_phase(record, chosen.algorithm, nccl_hops(chosen.algorithm, chosen.protocol)));
  }
  plan->shared_phases = phases;
  return known = plan;
}

PlanPhase Planner::nccl_phase(const CollectiveRecord& record, nccl::Algorithm algorithm,
                              const Hops& hops) const {
  const int n = hops.layout.ranks;
  if (record.op == OpType::kBroadcast) {
    std::vector<std::vector<int>> orders = rings();
    for (std::vector<int>& order : orders) {
      std::rotate(order.begin(), std::find(order.begin(), order.end(), record.root), order.end());
    }
    return chain_phase(hops, orders, 1);
  }
  if (record.op == OpType::kReduce) {
    std::vector<std::vector<int>> orders = rings();
    for (std::vector<int>& order : orders) {
      std::rotate(order.begin(), std::find(order.begin(), order.end(), record.root), order.end());
    }
    return reduce_chain_phase(hops, orders, 1);
  }
  if (record.op == OpType::kReduceScatter) {
    return ring_phase(hops, rings(), n - 1, static_cast<double>(n - 1) / n);
  }
  if (record.op == OpType::kAllgather) return ring_phase(hops, rings(), n - 1, n - 1);
  switch (algorithm) {
    case nccl::Algorithm::kRing:
      break;
    case nccl::Algorithm::kNvls:
      return nvls_phase(hops);
    case nccl::Algorithm::kNvlsTree:
      return double_tree_phase(hops, hops.layout.per_node, true);
    case nccl::Algorithm::kTree: {
      const bool one_node = hops.layout.nodes() == 1;
      return double_tree_phase(hops, one_node ? 1 : static_cast<int>(rings().size()), false);
    }
  }
  return ring_phase(hops, rings(), 2 * (n - 1), 2.0 * (n - 1) / n);
}

}  // namespace gradsync
