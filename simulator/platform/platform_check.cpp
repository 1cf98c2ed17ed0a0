#include <fmt/format.h>

#include "gradsync/core/error.hpp"
#include "gradsync/simulator/platform/cube_mesh.hpp"
#include "gradsync/simulator/platform/platform.hpp"

namespace gradsync {
namespace {

using Topology = ClusterSpec::Topology;

[[noreturn]] void refuse(const char* pointer, std::string expected, std::string found,
                         std::string hint) {
  throw ConfigError({"", pointer, std::move(expected), std::move(found), std::move(hint)});
}

void check_link(const LinkSpec& link, const char* pointer) {
  if (!(link.bandwidth.value > 0) || !(link.latency.count() >= 0)) {
    refuse(pointer, "a bandwidth above 0 and a latency of 0 or more",
           format_bandwidth(link.bandwidth) + ", " + format_duration(link.latency), "");
  }
}

/// A double, because the product of a few counts may not fit in an integer.
double product(const std::vector<std::int64_t>& counts) {
  double result = counts.empty() ? 0 : 1;
  for (const std::int64_t count : counts) result *= static_cast<double>(count);
  return result;
}

void check_places(const char* pointer, const std::vector<std::int64_t>& counts,
                  std::int64_t nodes) {
  if (product(counts) >= static_cast<double>(nodes)) return;
  refuse(pointer, fmt::format("numbers whose product, the places, is at least {} nodes", nodes),
         fmt::format("{:.0f}", product(counts)), "");
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
  check_places("/cluster/fat_tree/down", cluster.fat_tree_down, nodes);
}

}  // namespace

void check_cluster(const ClusterSpec& cluster, int ranks) {
  if (cluster.gpus_per_node < 1) {
    refuse("/cluster/gpus_per_node", "1 or more", fmt::format("{}", cluster.gpus_per_node), "");
  }
  const std::int64_t needed = (ranks + cluster.gpus_per_node - 1) / cluster.gpus_per_node;
  const std::int64_t nodes = cluster.nodes > 0 ? cluster.nodes : needed;
  if (nodes < needed) {
    refuse("/cluster/nodes", fmt::format("nodes and GPUs for {} ranks", ranks),
           fmt::format("{} ({} x {} GPUs)", nodes * cluster.gpus_per_node, nodes,
                       cluster.gpus_per_node),
           fmt::format("{} nodes of {} GPUs would do", needed, cluster.gpus_per_node));
  }
  if (cluster.node_topology == ClusterSpec::NodeTopology::kCubeMesh &&
      cluster.gpus_per_node != cube_mesh::kGpus) {
    refuse("/cluster/gpus_per_node", fmt::format("the {} GPUs of a cube mesh", cube_mesh::kGpus),
           fmt::format("{}", cluster.gpus_per_node), "");
  }
  check_link(cluster.intra_node, "/cluster/intra_node");
  check_link(cluster.inter_node, "/cluster/inter_node");
  switch (cluster.topology) {
    case Topology::kStar:
    case Topology::kLeafSpine:
      break;
    case Topology::kFatTree:
      check_fat_tree(cluster, nodes);
      break;
    case Topology::kTorus:
      check_places("/cluster/torus/dimensions", cluster.torus_dimensions, nodes);
      break;
    case Topology::kDragonfly:
      check_places("/cluster/dragonfly",
                   {cluster.dragonfly_groups, cluster.dragonfly_chassis, cluster.dragonfly_routers,
                    cluster.dragonfly_nodes},
                   nodes);
      // SimGrid's route to group g starts at router g of a chassis, whether or not that exists.
      if (cluster.dragonfly_routers < cluster.dragonfly_groups) {
        refuse("/cluster/dragonfly/routers",
               fmt::format("at least as many as there are groups, {}", cluster.dragonfly_groups),
               fmt::format("{}", cluster.dragonfly_routers),
               "router g of a chassis leads to group g");
      }
      break;
  }
}

}  // namespace gradsync
