#include "gradsync/simulator/platform/platform.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "gradsync/core/error.hpp"
#include "gradsync/simulator/platform/cube_mesh.hpp"
#include "gradsync/simulator/platform/gpu_cable.hpp"

namespace gradsync {
namespace {

namespace s4u = simgrid_compat::s4u;
using simgrid_compat::DirectedLinks;
using NodeTopology = ClusterSpec::NodeTopology;
using Topology = ClusterSpec::Topology;

// Compute is replayed or charged as time, so the host's speed is never used.
constexpr double kHostSpeed = 1.0;

template <class To, class From>
std::vector<To> converted(const std::vector<From>& values) {
  std::vector<To> result;
  for (const From value : values) result.push_back(static_cast<To>(value));
  return result;
}

}  // namespace

Platform::Platform(SimEngine& engine, const ClusterSpec& cluster, int ranks,
                   const std::vector<TrafficFlow>& traffic)
    : cluster_(cluster), ranks_(ranks) {
  for (const TrafficFlow& flow : traffic) traffic_.push_back({.flow = flow});
  if (!cluster.platform_file.empty()) {
    load_file(engine);
    return;
  }
  check_cluster(cluster, ranks);
  nodes_ = (ranks_ + cluster.gpus_per_node - 1) / cluster.gpus_per_node;
  const Zone top = simgrid_compat::add_star(engine.simgrid(), nullptr, "cluster");
  if (cluster.software.host_bandwidth) {
    for (std::int64_t node = 0; node < nodes_; ++node) {
      cpus_.push_back(simgrid_compat::add_shared_link(top.zone, fmt::format("cpu-{}", node),
                                                      cluster.software.host_bandwidth->value));
    }
  }
  build_inside(engine, top.zone);
  if (nodes_ > 1) build_fabric(engine, top.zone);
  top.zone->seal();
}

void Platform::load_file(SimEngine& engine) {
  if (!engine.is_first()) {
    throw ConfigError({"", "/cluster/platform_file", "the first simulation of this process",
                       "a later one", "run this scenario by itself; SimGrid 3.32 cannot do it"});
  }
  cluster_.gpus_per_node = 1;
  nodes_ = ranks_;
  engine.simgrid().load_platform(cluster_.platform_file);
  for (Link* link : engine.simgrid().get_all_links()) {
    latencies_[link] = Seconds(link->get_latency());
    link->set_latency(0);
  }
  const std::vector<Host*> hosts = engine.simgrid().get_all_hosts();
  if (static_cast<std::int64_t>(hosts.size()) < ranks_) {
    throw ConfigError({"", "/cluster/platform_file",
                       fmt::format("a host for each of {} ranks", ranks_),
                       fmt::format("{} hosts", hosts.size()), ""});
  }
  inside_.assign(hosts.begin(), hosts.begin() + ranks_);
  ports_ = inside_;
  for (Traffic& traffic : traffic_) {
    if (traffic.flow.rate.value > 0) {
      throw ConfigError(
          {"", "/imperfections/traffic", "traffic without a rate", "a rate",
           "on a platform from a file a flow takes its share; give it on and period"});
    }
    traffic.from = inside_.at(static_cast<std::size_t>(traffic.flow.from));
    traffic.to = inside_.at(static_cast<std::size_t>(traffic.flow.to));
  }
}

std::int64_t Platform::last_rank(std::int64_t node) const {
  return std::min((node + 1) * cluster_.gpus_per_node, ranks_);
}

Platform::Cable* Platform::add_cable(NetZone* zone, const std::string& name, const LinkSpec& spec) {
  Cable* cable = simgrid_compat::add_cable(zone, name, spec.bandwidth.value);
  latencies_[cable->get_link_up()] = spec.latency;
  latencies_[cable->get_link_down()] = spec.latency;
  return cable;
}

DirectedLinks Platform::to_cpu(std::int64_t node) const {
  if (cpus_.empty()) return {};
  return {s4u::LinkInRoute(cpus_[static_cast<std::size_t>(node)])};
}

void Platform::build_inside(SimEngine& engine, NetZone* top) {
  if (cluster_.node_topology == NodeTopology::kCubeMesh) {
    for (std::int64_t node = 0; node < nodes_; ++node) build_cube_mesh(top, node);
    return;
  }
  if (cluster_.node_topology == NodeTopology::kPcieTree) {
    for (std::int64_t node = 0; node < nodes_; ++node) build_pcie_tree(top, node);
    return;
  }
  // One star for all nodes: a route between two members uses only their cables, so there is no need
  // to separate the nodes' switches.
  const Zone star = simgrid_compat::add_star(engine.simgrid(), top, "inside");
  for (std::int64_t rank = 0; rank < ranks_; ++rank) {
    const std::string name = fmt::format("rank-{}", rank);
    gpu_cables_.push_back(add_cable(star.zone, name, gpu_cable(cluster_, ranks_)));
    inside_.push_back(simgrid_compat::add_host(star.zone, name, kHostSpeed));
    DirectedLinks links{simgrid_compat::up(gpu_cables_.back())};
    for (const auto& cpu : to_cpu(rank / cluster_.gpus_per_node)) links.push_back(cpu);
    simgrid_compat::plug(star.zone, inside_.back(), links);
  }
  star.zone->seal();
}

void Platform::build_cube_mesh(NetZone* top, std::int64_t node) {
  NetZone* zone = simgrid_compat::add_full(top, fmt::format("mesh-{}", node));
  const std::int64_t first = node * cube_mesh::kGpus;
  const auto gpus = static_cast<int>(last_rank(node) - first);
  for (int gpu = 0; gpu < gpus; ++gpu) {
    inside_.push_back(
        simgrid_compat::add_host(zone, fmt::format("rank-{}", first + gpu), kHostSpeed));
  }
  Cable* cables[cube_mesh::kGpus][cube_mesh::kGpus] = {};  // [a][b], a < b
  for (int a = 0; a < cube_mesh::kGpus; ++a) {
    for (int b = a + 1; b < cube_mesh::kGpus; ++b) {
      if (cube_mesh::links(a, b) == 0) continue;
      LinkSpec spec = cluster_.intra_node;
      spec.bandwidth.value *= cube_mesh::links(a, b);
      cables[a][b] = add_cable(zone, fmt::format("nvlink-{}-{}-{}", node, a, b), spec);
    }
  }
  const auto hop = [&](int a, int b) {
    return a < b ? simgrid_compat::up(cables[a][b]) : simgrid_compat::down(cables[b][a]);
  };
  for (int from = 0; from < gpus; ++from) {
    for (int to = 0; to < gpus; ++to) {
      if (from == to) continue;
      DirectedLinks links = to_cpu(node);
      int at = from;
      for (const int via : cube_mesh::way(from, to)) {
        links.push_back(hop(at, via));
        at = via;
      }
      links.push_back(hop(at, to));
      simgrid_compat::join(zone, inside_[static_cast<std::size_t>(first + from)],
                           inside_[static_cast<std::size_t>(first + to)], links);
    }
  }
  zone->seal();
}

void Platform::build_pcie_tree(NetZone* top, std::int64_t node) {
  // Explicit routes between all pairs. Nested zones would be simpler, but SimGrid cannot route
  // through a gateway that is a switch of switches.
  NetZone* zone = simgrid_compat::add_full(top, fmt::format("pcie-{}", node));
  const std::int64_t first = node * cluster_.gpus_per_node;
  const std::int64_t end = last_rank(node);
  const std::int64_t per_switch = cluster_.pcie_gpus_per_switch;
  std::vector<Cable*> switches;
  for (std::int64_t rank = first; rank < end; ++rank) {
    const std::string name = fmt::format("rank-{}", rank);
    gpu_cables_.push_back(add_cable(zone, name, cluster_.intra_node));
    inside_.push_back(simgrid_compat::add_host(zone, name, kHostSpeed));
    if ((rank - first) % per_switch == 0) {
      switches.push_back(add_cable(zone, fmt::format("pcie-switch-{}-{}", node, switches.size()),
                                   cluster_.intra_node));
    }
  }
  // Switches are assigned to the sockets in turn; up is from socket 0 to socket 1.
  Cable* socket = add_cable(zone, fmt::format("socket-{}", node), cluster_.pcie_socket);
  for (std::int64_t from = first; from < end; ++from) {
    for (std::int64_t to = first; to < end; ++to) {
      if (from == to) continue;
      const auto a = static_cast<std::size_t>((from - first) / per_switch);
      const auto b = static_cast<std::size_t>((to - first) / per_switch);
      DirectedLinks links{simgrid_compat::up(gpu_cables_[static_cast<std::size_t>(from)])};
      if (a != b) links.push_back(simgrid_compat::up(switches[a]));
      if (a % 2 < b % 2) links.push_back(simgrid_compat::up(socket));
      if (a % 2 > b % 2) links.push_back(simgrid_compat::down(socket));
      if (a != b) links.push_back(simgrid_compat::down(switches[b]));
      links.push_back(simgrid_compat::down(gpu_cables_[static_cast<std::size_t>(to)]));
      for (const auto& cpu : to_cpu(node)) links.push_back(cpu);
      simgrid_compat::join(zone, inside_[static_cast<std::size_t>(from)],
                           inside_[static_cast<std::size_t>(to)], links);
    }
  }
  zone->seal();
}

void Platform::add_port(NetZone* zone, std::int64_t rank, bool with_adapter) {
  DirectedLinks links;
  // A cube mesh reaches its adapters over PCIe, which is not part of the mesh.
  if (!gpu_cables_.empty()) {
    links.push_back(simgrid_compat::up(gpu_cables_[static_cast<std::size_t>(rank)]));
  }
  const std::int64_t node = rank / cluster_.gpus_per_node;
  for (const auto& cpu : to_cpu(node)) links.push_back(cpu);
  if (with_adapter) {
    const std::int64_t place = rank % cluster_.gpus_per_node;
    if (place == 0) {
      adapters_.clear();
      for (std::int64_t i = 0; i < cluster_.nics_per_node; ++i) {
        adapters_.push_back(
            add_cable(zone, fmt::format("nic-{}-{}", node, i), cluster_.inter_node));
      }
      add_traffic(zone, node, {simgrid_compat::up(adapters_.front())});
    }
    const std::int64_t adapter = place * cluster_.nics_per_node / cluster_.gpus_per_node;
    links.push_back(simgrid_compat::up(adapters_[static_cast<std::size_t>(adapter)]));
  }
  ports_.push_back(simgrid_compat::add_host(zone, fmt::format("port-{}", rank), kHostSpeed));
  simgrid_compat::plug(zone, ports_.back(), links);
}

void Platform::add_traffic(NetZone* zone, std::int64_t node, const DirectedLinks& links) {
  for (std::size_t i = 0; i < traffic_.size(); ++i) {
    Traffic& traffic = traffic_[i];
    const std::string name = fmt::format("traffic-{}", i);
    if (traffic.flow.from == node) {
      DirectedLinks way;
      if (traffic.flow.rate.value > 0) {
        way.emplace_back(simgrid_compat::add_shared_link(zone, name, traffic.flow.rate.value));
      }
      way.insert(way.end(), links.begin(), links.end());
      traffic.from = simgrid_compat::add_host(zone, name + "-from", kHostSpeed);
      simgrid_compat::plug(zone, traffic.from, way);
    }
    if (traffic.flow.to == node) {
      traffic.to = simgrid_compat::add_host(zone, name + "-to", kHostSpeed);
      simgrid_compat::plug(zone, traffic.to, links);
    }
  }
}

Platform::Zone Platform::add_ports(SimEngine& engine, NetZone* parent, std::int64_t node) {
  const Zone zone =
      simgrid_compat::add_star(engine.simgrid(), parent, fmt::format("ports-{}", node));
  for (std::int64_t rank = node * cluster_.gpus_per_node; rank < last_rank(node); ++rank) {
    add_port(zone.zone, rank, false);
  }
  add_traffic(zone.zone, node, {});
  zone.zone->seal();
  return zone;
}

void Platform::build_leaves(SimEngine& engine, NetZone* top) {
  const bool one_switch = cluster_.topology == Topology::kStar;
  const std::int64_t per_leaf = one_switch ? nodes_ : cluster_.leaf_nodes;
  const Zone spine = simgrid_compat::add_star(engine.simgrid(), top, "fabric");
  LinkSpec uplink = cluster_.inter_node;
  uplink.bandwidth.value *= static_cast<double>(per_leaf * cluster_.nics_per_node) /
                            (one_switch ? 1 : cluster_.leaf_oversubscription);
  for (std::int64_t leaf = 0; leaf * per_leaf < nodes_; ++leaf) {
    const std::string name = fmt::format("leaf-{}", leaf);
    const Zone zone = simgrid_compat::add_star(engine.simgrid(), spine.zone, name);
    const std::int64_t end = std::min(ranks_, (leaf + 1) * per_leaf * cluster_.gpus_per_node);
    for (std::int64_t rank = leaf * per_leaf * cluster_.gpus_per_node; rank < end; ++rank) {
      add_port(zone.zone, rank, true);
    }
    zone.zone->seal();
    simgrid_compat::plug(spine.zone, zone,
                         {simgrid_compat::up(add_cable(spine.zone, name, uplink))});
  }
  spine.zone->seal();
}

void Platform::build_fabric(SimEngine& engine, NetZone* top) {
  const double bandwidth =
      cluster_.inter_node.bandwidth.value * static_cast<double>(cluster_.nics_per_node);
  const auto leaf = [&](NetZone* fabric, unsigned long node) {
    return add_ports(engine, fabric, static_cast<std::int64_t>(node));
  };
  switch (cluster_.topology) {
    case Topology::kStar:
    case Topology::kLeafSpine:
      build_leaves(engine, top);
      break;
    case Topology::kFatTree:
      simgrid_compat::add_fat_tree(top, "fabric", converted<unsigned>(cluster_.fat_tree_down),
                                   converted<unsigned>(cluster_.fat_tree_up),
                                   converted<unsigned>(cluster_.fat_tree_links), bandwidth, leaf)
          ->seal();
      break;
    case Topology::kTorus:
      simgrid_compat::add_torus(top, "fabric", converted<unsigned long>(cluster_.torus_dimensions),
                                bandwidth, leaf)
          ->seal();
      break;
    case Topology::kDragonfly:
      simgrid_compat::add_dragonfly(top, "fabric", static_cast<unsigned>(cluster_.dragonfly_groups),
                                    static_cast<unsigned>(cluster_.dragonfly_chassis),
                                    static_cast<unsigned>(cluster_.dragonfly_routers),
                                    static_cast<unsigned>(cluster_.dragonfly_nodes), bandwidth,
                                    leaf)
          ->seal();
      break;
  }
}

std::pair<Platform::Host*, Platform::Host*> Platform::ends(int from, int to) const {
  const std::vector<Host*>& hosts = same_node(from, to) ? inside_ : ports_;
  return {hosts.at(static_cast<std::size_t>(from)), hosts.at(static_cast<std::size_t>(to))};
}

std::vector<Platform::Link*> Platform::route(int from, int to) const {
  std::vector<Link*> links;
  double unused = 0;
  const auto [source, target] = ends(from, to);
  source->route_to(target, links, &unused);
  return links;
}

void Platform::add_latency(const Link* link, Seconds more) {
  // The links that SimGrid creates for a fabric are inter_node cables.
  latencies_.try_emplace(link, cluster_.inter_node.latency).first->second += more;
}

Seconds Platform::latency(int from, int to) const {
  Seconds sum = cluster_.software.per_message;
  for (const Link* link : route(from, to)) {
    const auto known = latencies_.find(link);
    // The links that SimGrid creates for a fabric are inter_node cables; a CPU has no latency.
    if (known != latencies_.end()) {
      sum += known->second;
    } else if (std::find(cpus_.begin(), cpus_.end(), link) == cpus_.end()) {
      sum += cluster_.inter_node.latency;
    }
  }
  return sum;
}

}  // namespace gradsync
