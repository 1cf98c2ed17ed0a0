// NCCL's and RCCL's plans: what the model chooses, and at what pace it then moves.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "gradsync/simulator/plan/nccl_pace.hpp"
#include "gradsync/simulator/plan/planner.hpp"
#include "gradsync/simulator/platform/cube_mesh.hpp"
#include "gradsync/simulator/platform/gpu_cable.hpp"

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

bool uses_nvls(nccl::Algorithm algorithm) {
  return algorithm == nccl::Algorithm::kNvls || algorithm == nccl::Algorithm::kNvlsTree;
}

}  // namespace

bool Planner::sends_long_messages(const nccl::Candidate& chosen, double bytes) const {
  if (chosen.protocol != nccl::Protocol::kLl) return true;
  const bool ring = chosen.algorithm == nccl::Algorithm::kRing;
  const double each = bytes / chosen.lanes / (ring ? hops_.layout.ranks : 1);
  return std::min(each, nccl::ring_chunk(chosen.protocol)) *
             nccl::Model::wire_factor(chosen.protocol) >=
         nccl::kLongMessage;
}

Hops Planner::nccl_hops(nccl::Algorithm algorithm, nccl::Protocol protocol,
                        bool long_messages) const {
  Hops hops = hops_;
  const double scale = cluster_.software.hop_latency_scale;
  const nccl::NetworkPace network = nccl::network_pace(cluster_);
  if (uses_nvls(algorithm)) {
    hops.between = scale * model_->hop_latency(algorithm, protocol, true);
    hops.weight_inside = 1 / nccl::kNvlsPayload;
  } else {
    hops.inside = scale * pace_.hop_scale * model_->hop_latency(algorithm, protocol, false);
    hops.between = scale * model_->hop_latency(algorithm, protocol, true);
  }
  hops.between += network.latency;
  if (long_messages) hops.between += network.handshake;
  hops.weight_between = 1 / network.payload;
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
    // The GPUs of a rail come into the node by its adapter: each ring begins at another one.
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
  auto algorithm = nccl_algorithm(communication_.algorithm);
  if (cluster_.library == ClusterSpec::Library::kRccl) algorithm = nccl::Algorithm::kRing;
  const auto protocol = nccl_protocol(communication_.protocol);
  const Bytes bytes = std::max<Bytes>(record.bytes, 4);
  std::vector<nccl::Candidate> allowed = model_->candidates(bytes, algorithm, protocol);
  std::vector<Seconds> times;
  for (const nccl::Candidate& candidate : allowed) times.push_back(moving_time(candidate, bytes));
  // NCCL's tables choose well between ways that are as good. Where they would take one that is
  // slower by more than this, its authors' measurements know better than either model.
  constexpr double kAsGood = 1.03;
  const Seconds limit = kAsGood * *std::min_element(times.begin(), times.end());
  const auto first =
      std::find_if(times.begin(), times.end(), [&](Seconds time) { return time <= limit; });
  return allowed[static_cast<std::size_t>(first - times.begin())];
}

/// As the closed form of analytic.hpp has it, for nodes that are alike and a fabric that is never
/// the bottleneck.
Seconds Planner::moving_time(const nccl::Candidate& way, Bytes bytes) const {
  Plan plan;
  const auto data = static_cast<double>(bytes);
  set_pace(plan, way, OpType::kAllreduce, data);
  const Hops hops = nccl_hops(way.algorithm, way.protocol, sends_long_messages(way, data));
  const Layout& layout = hops.layout;
  const int nodes = layout.nodes(), per_node = layout.per_node, n = layout.ranks;
  const auto rails = static_cast<double>(std::min(cluster_.nics_per_node, cluster_.gpus_per_node));
  const double all_ways = nodes == 1 ? 6 : std::min(rails, 2.0);
  const double links = layout.cube_mesh && per_node == cube_mesh::kGpus ? all_ways : 1;
  const double gpu = gpu_cable(cluster_, n).bandwidth.value * links;
  const double wire = data * plan.wire_factor;
  const auto inside = [&](double share) {
    return Seconds(share * wire * hops.weight_inside / gpu);
  };
  const auto between = [&](double share) {
    const double line = cluster_.inter_node.bandwidth.value * rails;
    return Seconds(nodes > 1 ? share * wire * hops.weight_between / line : 0.0);
  };
  const Seconds least = plan.least({}, bytes);
  const Seconds in = per_node > 1 ? hops.latency(0, 1) : Seconds(0);
  const Seconds out = nodes > 1 ? hops.latency(0, per_node) : Seconds(0);
  const double part = std::min(1.0, plan.chunk_bytes / data);
  const double crossing = tree_load(nodes);
  const int depth = tree_depth(nodes);
  switch (way.algorithm) {
    case nccl::Algorithm::kRing: {
      const double share = 2.0 * (n - 1) / n;
      const int steps = 2 * (n - 1);
      const Seconds here = n > nodes ? std::max(inside(share), least) + steps * in : Seconds(0);
      const Seconds there = nodes > 1 ? std::max(between(share), least) + steps * out : Seconds(0);
      return plan.base + std::max(here, there);
    }
    case nccl::Algorithm::kTree: {
      const Seconds hop = std::max(inside(nodes == 1 ? 0.5 : 0.5 / rails), least) * part + in;
      // A message to another node passes over its GPU's cable too, and over that of the head alone
      // if there is one adapter.
      const double chain = per_node > 2 ? 2 : 1;
      const double load = nodes == 1  ? chain
                          : rails > 1 ? 2.0 * (per_node - 1) / per_node + crossing / rails
                                      : std::max(chain, (per_node > 1 ? 1 : 0) + crossing);
      const Seconds one_way = std::max({between(0.5), inside(nodes > 1 ? 0.5 / rails : 0), least});
      const Seconds net_hop = one_way * part + out;
      const Seconds busiest = std::max({least, between(crossing), inside(load)});
      // Of the first chunk, one hop has the links with others (Plan::duration).
      const Seconds met = 0.4 * part * std::max(Seconds(0), between(crossing) - between(0.5));
      return plan.base + 2 * (per_node - 1) * hop + 2 * depth * net_hop + busiest * (1 - part) +
             met;
    }
    case nccl::Algorithm::kNvls:
      return plan.base + std::max(least, inside((n + 1.0) / n)) + in;
    case nccl::Algorithm::kNvlsTree:
      break;
  }
  const Seconds busiest = std::max({least, inside((per_node + 1.0) / per_node), between(crossing)});
  return plan.base + (1 + part) * busiest + 2 * depth * (between(0.5) * part + out) + 2 * in;
}

/// NVLS, in rounds: the kernels of a GPU take a chunk of every head through the switch, head by
/// head. Between nodes each neighbour in the tree takes its time too.
void Planner::pace_nvls(Plan& plan, nccl::Algorithm algorithm, double bytes) const {
  const int nodes = hops_.layout.nodes();
  const int heads = hops_.layout.per_node;
  const bool tree = algorithm == nccl::Algorithm::kNvlsTree;
  const int channels = nccl::nvls_kernel_channels(cluster_.generation, nodes);
  const int concurrent = channels * heads;
  const bool short_chunks =
      cluster_.generation == ClusterSpec::Generation::kBlackwell && heads >= 16;
  const double most = tree ? nccl::nvls_tree_chunk(bytes, concurrent, nodes, short_chunks)
                           : nccl::nvls_chunk(bytes, concurrent);
  const double chunk = std::min(most, bytes / concurrent);
  Seconds step = pace_.nvls_step;
  if (tree) step += std::min(nodes - 1, 3) * nccl::kNvlsTreeNeighbour;
  const Seconds round = heads * (Seconds(chunk * channels / pace_.nvls.value) + step);
  plan.chunk_bytes = chunk * concurrent;
  plan.limit = {plan.chunk_bytes / round.count()};
  // The first round passes two stages, scatter and gather, before and after the switch.
  if (!tree) plan.base += 2 * round;
}

void Planner::set_pace(Plan& plan, const nccl::Candidate& chosen, OpType op, double bytes) const {
  const double scale = cluster_.software.hop_latency_scale;
  plan.base = pace_.launch;
  if (uses_nvls(chosen.algorithm)) {
    // NCCL's table has no base for NVLS; its kernels start like those of Simple.
    plan.base += scale * model_->base_latency(nccl::Algorithm::kRing, nccl::Protocol::kSimple);
    pace_nvls(plan, chosen.algorithm, bytes);
    return;
  }
  plan.base += scale * model_->base_latency(chosen.algorithm, chosen.protocol);
  plan.wire_factor = nccl::Model::wire_factor(chosen.protocol);
  const Layout& layout = hops_.layout;
  const double n = layout.ranks;
  const bool is_chain = op == OpType::kBroadcast || op == OpType::kReduce;
  const bool is_ring = chosen.algorithm == nccl::Algorithm::kRing && !is_chain;
  const double chunk = is_ring ? nccl::ring_chunk(chosen.protocol)
                               : nccl::tree_chunk(chosen.protocol, bytes, chosen.lanes,
                                                  layout.nodes(), layout.per_node);
  plan.chunk_bytes = chunk * chosen.lanes;
  const auto protocol = static_cast<std::size_t>(chosen.protocol);
  double most = model_->kernel_limit(chosen) / (op == OpType::kAllgather ? n : 1);
  if (!is_ring) most = std::min(most, pace_.channel[protocol] * chosen.lanes * chosen.width);
  // LL in a node: each edge carries the message so many times.
  const bool all_inside =
      layout.nodes() == 1 || cluster_.node_topology == ClusterSpec::NodeTopology::kPcieTree;
  if (chosen.protocol == nccl::Protocol::kLl && pace_.ll.value > 0 && all_inside &&
      layout.per_node > 1) {
    const bool is_allreduce = op == OpType::kAllreduce || op == OpType::kBarrier;
    const double times =
        is_allreduce && is_ring ? 2 * (n - 1) / n : nccl::ring_passes(op, layout.ranks);
    most = std::min(most, pace_.ll.value / times);
  }
  plan.limit = {std::isfinite(most) ? most : 0.0};
}

std::string Planner::summary() const {
  if (ways_.empty()) return "";
  const bool rccl = cluster_.library == ClusterSpec::Library::kRccl;
  return fmt::format("all-reduces by {}: {}", rccl ? "rccl" : "nccl", fmt::join(ways_, ", "));
}

void Planner::remember(const CollectiveRecord& record, const std::string& way) {
  if (record.op != OpType::kAllreduce) return;
  if (std::find(ways_.begin(), ways_.end(), way) == ways_.end()) ways_.push_back(way);
}

std::shared_ptr<const Plan> Planner::direct_plan() {
  std::shared_ptr<const Plan>& known = plans_["direct"];
  if (known != nullptr) return known;
  auto plan = std::make_shared<Plan>();
  plan->name = "direct";
  plan->base = pace_.launch;
  const std::vector<int> members = hops_.layout.members(0, 0);
  plan->shared_phases = std::make_shared<const std::vector<PlanPhase>>(
      bcube_phases(hops_, members, {static_cast<int>(members.size())}));
  return known = plan;
}

void Planner::explain(const CollectiveRecord& record, const nccl::Candidate& chosen,
                      const std::string& name) {
  const std::string op = gradsync::to_string(record.op);
  const std::string subject = fmt::format("{} of {} bytes: {}", op, record.bytes, name);
  if (explained_[subject]) return;
  explained_[subject] = true;
  const bool rated = record.op == OpType::kAllreduce;
  const auto mover = [&](const nccl::Candidate& way) { return moving_time(way, record.bytes); };
  explanations_.push_back(rated
                              ? subject + "\n" + nccl::explain(*model_, record.bytes, chosen, mover)
                              : subject + "\n");
}

std::shared_ptr<const Plan> Planner::nccl_plan(const CollectiveRecord& record) {
  using nccl::to_string;
  const bool allreduce = record.op == OpType::kAllreduce || record.op == OpType::kBarrier;
  if (allreduce && communication_.algorithm == Algorithm::kHierarchical) {
    remember(record, "hierarchical");
    std::shared_ptr<const Plan>& known = plans_["hierarchical"];
    if (known == nullptr) {
      known = hierarchical_plan(nccl_hops(nccl::Algorithm::kRing, nccl::Protocol::kSimple, true));
    }
    return known;
  }
  const bool rccl = cluster_.library == ClusterSpec::Library::kRccl;
  if (rccl && record.op == OpType::kAllreduce && hops_.layout.nodes() == 1 &&
      communication_.algorithm == Algorithm::kAuto) {
    remember(record, "direct");
    return direct_plan();
  }
  const nccl::Candidate chosen = choose(record);
  const std::string name =
      fmt::format("{} {}, {} channel{}", to_string(chosen.algorithm), to_string(chosen.protocol),
                  chosen.channels, chosen.channels == 1 ? "" : "s");
  explain(record, chosen, name);
  remember(record, fmt::format("{} {}", to_string(chosen.algorithm), to_string(chosen.protocol)));
  const std::string kind = allreduce ? "allreduce" : std::string(gradsync::to_string(record.op));
  std::shared_ptr<const Plan>& known =
      plans_[fmt::format("{} {} {} {}", kind, name, record.root, record.bytes)];
  if (known != nullptr) return known;
  auto plan = std::make_shared<Plan>();
  plan->name = name;
  const auto bytes = static_cast<double>(std::max<Bytes>(record.bytes, 4));
  set_pace(*plan, chosen, record.op, bytes);
  // Plans that differ in their numbers alone have the same edges, and there may be millions.
  const bool is_long = sends_long_messages(chosen, bytes);
  auto& phases = phases_[fmt::format("{} {} {} {} {}", kind, to_string(chosen.algorithm),
                                     to_string(chosen.protocol), is_long, record.root)];
  if (phases == nullptr) {
    const Hops hops = nccl_hops(chosen.algorithm, chosen.protocol, is_long);
    phases = std::make_shared<const std::vector<PlanPhase>>(
        1, nccl_phase(record, chosen.algorithm, hops));
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
  // A step of a ring waits for its neighbours': NCCL's kernels do not hide one hop behind another.
  const auto ring = [&](int steps, double share) {
    PlanPhase phase = ring_phase(hops, rings(), steps, share);
    phase.in_step = true;
    return phase;
  };
  if (record.op == OpType::kReduce) {
    std::vector<std::vector<int>> orders = rings();
    for (std::vector<int>& order : orders) {
      std::rotate(order.begin(), std::find(order.begin(), order.end(), record.root), order.end());
    }
    return reduce_chain_phase(hops, orders, 1);
  }
  if (record.op == OpType::kReduceScatter) return ring(n - 1, static_cast<double>(n - 1) / n);
  if (record.op == OpType::kAllgather) return ring(n - 1, n - 1);
  switch (algorithm) {
    case nccl::Algorithm::kRing:
      break;
    case nccl::Algorithm::kNvls:
      return nvls_phase(hops);
    case nccl::Algorithm::kNvlsTree:
      return nvls_tree_phase(hops);
    case nccl::Algorithm::kTree: {
      const bool one_node = hops.layout.nodes() == 1;
      return double_tree_phase(hops, one_node ? 1 : static_cast<int>(rings().size()));
    }
  }
  return ring(2 * (n - 1), 2.0 * (n - 1) / n);
}

}  // namespace gradsync
