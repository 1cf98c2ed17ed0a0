#include "simulator/platform.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "engine/core/error.hpp"

namespace gradsync {
namespace {

namespace s4u = simgrid_compat::s4u;

[[noreturn]] void refuse(const char* pointer, std::string expected, std::string found,
                         std::string hint) {
  throw ConfigError({"", pointer, std::move(expected), std::move(found), std::move(hint)});
}

std::int64_t node_count(const ClusterSpec& cluster, int ranks) {
  if (cluster.nodes > 0) return cluster.nodes;
  return (ranks + cluster.gpus_per_node - 1) / cluster.gpus_per_node;
}

void check_link(const LinkSpec& link, const char* pointer) {
  if (!(link.bandwidth.value > 0) || !(link.latency.count() >= 0)) {
    refuse(pointer, "a bandwidth above 0 and a latency of 0 or more",
           format_bandwidth(link.bandwidth) + ", " + format_duration(link.latency), "");
  }
}

void check_fat_tree(const ClusterSpec& cluster, std::int64_t nodes) {
  const std::size_t levels = cluster.fat_tree_down.size();
  if (levels == 0 || cluster.fat_tree_up.size() != levels ||
      cluster.fat_tree_links.size() != levels) {
    refuse("/cluster/fat_tree", "down, up and links with one number for each level",
           fmt::format("{}, {} and {} numbers", levels, cluster.fat_tree_up.size(),
                       cluster.fat_tree_links.size()),
           "");
  }
  double leaves = 1;  // of a few counts; their product need not fit in an integer
  for (const std::int64_t children : cluster.fat_tree_down) {
    leaves *= static_cast<double>(children);
  }
  if (leaves < static_cast<double>(nodes)) {
    refuse("/cluster/fat_tree/down",
           fmt::format("numbers whose product, the tree's leaves, is at least {} nodes", nodes),
           fmt::format("{:.0f}", leaves), "");
  }
}

std::vector<unsigned> to_unsigned(const std::vector<std::int64_t>& values) {
  std::vector<unsigned> result;
  for (const std::int64_t value : values) result.push_back(static_cast<unsigned>(value));
  return result;
}

}  // namespace

void check_cluster(const ClusterSpec& cluster, int ranks) {
  if (cluster.gpus_per_node < 1) {
    refuse("/cluster/gpus_per_node", "1 or more", fmt::format("{}", cluster.gpus_per_node), "");
  }
  const std::int64_t nodes = node_count(cluster, ranks);
  const std::int64_t gpus = nodes * cluster.gpus_per_node;
  if (gpus < ranks) {
    refuse("/cluster/nodes", fmt::format("nodes and GPUs for {} ranks", ranks),
           fmt::format("{} ({} x {} GPUs)", gpus, nodes, cluster.gpus_per_node),
           fmt::format("{} nodes of {} GPUs would do",
                       (ranks + cluster.gpus_per_node - 1) / cluster.gpus_per_node,
                       cluster.gpus_per_node));
  }
  check_link(cluster.intra_node, "/cluster/intra_node");
  check_link(cluster.inter_node, "/cluster/inter_node");
  if (cluster.topology == ClusterSpec::Topology::kFatTree) check_fat_tree(cluster, nodes);
}

Platform::Platform(SimEngine& engine, const ClusterSpec& cluster, int ranks) : ranks_(ranks) {
  check_cluster(cluster, ranks);
  s4u::Engine& simgrid = engine.simgrid();
  const double bandwidth = cluster.inter_node.bandwidth.value;
  const double latency = cluster.inter_node.latency.count();
  if (cluster.topology == ClusterSpec::Topology::kFatTree) {
    simgrid_compat::add_fat_tree(
        simgrid, "fabric", to_unsigned(cluster.fat_tree_down), to_unsigned(cluster.fat_tree_up),
        to_unsigned(cluster.fat_tree_links), bandwidth, latency,
        [&](s4u::NetZone* tree, unsigned long node) {
          return add_node(engine, tree, cluster, static_cast<std::int64_t>(node));
        })
        ->seal();
    return;
  }
  const simgrid_compat::Zone fabric = simgrid_compat::add_star(simgrid, nullptr, "fabric");
  const std::int64_t used_nodes = (ranks + cluster.gpus_per_node - 1) / cluster.gpus_per_node;
  for (std::int64_t node = 0; node < used_nodes; ++node) {
    const simgrid_compat::Zone zone = add_node(engine, fabric.zone, cluster, node);
    simgrid_compat::plug(
        fabric.zone, zone,
        simgrid_compat::add_cable(fabric.zone, fmt::format("node-{}", node), bandwidth, latency));
  }
  fabric.zone->seal();
}

simgrid_compat::Zone Platform::add_node(SimEngine& engine, s4u::NetZone* parent,
                                        const ClusterSpec& cluster, std::int64_t node) {
  const simgrid_compat::Zone zone =
      simgrid_compat::add_star(engine.simgrid(), parent, fmt::format("node-{}", node));
  const std::int64_t first = node * cluster.gpus_per_node;
  for (std::int64_t rank = first; rank < std::min(first + cluster.gpus_per_node, ranks_); ++rank) {
    const std::string name = fmt::format("rank-{}", rank);
    // Compute is replayed or charged as time: the host's speed is never used.
    s4u::Host* host = simgrid_compat::add_host(zone.zone, name, 1.0);
    simgrid_compat::plug(
        zone.zone, host,
        simgrid_compat::add_cable(zone.zone, name, cluster.intra_node.bandwidth.value,
                                  cluster.intra_node.latency.count()));
    hosts_.push_back(host);
  }
  zone.zone->seal();
  return zone;
}

Seconds Platform::latency(int from, int to) const {
  std::vector<s4u::Link*> route;
  double seconds = 0;
  host(from)->route_to(host(to), route, &seconds);
  return Seconds(seconds);
}

}  // namespace gradsync
