#pragma once

#include <unordered_map>
#include <vector>

#include "gradsync/simulator/kernel/sim_engine.hpp"
#include "gradsync/simulator/platform/traffic.hpp"
#include "gradsync/testbed/scenario/scenario.hpp"

namespace gradsync {

/// Throws ConfigError with the pointer of the offending value if `ranks` ranks do not fit on
/// `cluster`, or the fabric has no room for its nodes.
void check_cluster(const ClusterSpec& cluster, int ranks);

/// The cluster in SimGrid, and the placement of the ranks.
///
/// rank --[intra_node cable]-- node switch (or PCIe tree, or cube mesh)
///     rank --[intra_node cable]--[adapter's inter_node cable]-- fabric
///
/// Every cable is full duplex: each direction has the full bandwidth. Switches add nothing. A
/// message between GPUs of one node thus has latency 2 * intra, and one between nodes 2 * intra + 2
/// * inter on a star; every cable between switches of a fabric adds inter again. A host bandwidth
/// is an additional link per node, shared by all its ranks in both directions; a message counts
/// once in each node it touches. Rank r is GPU r % gpus_per_node of node r / gpus_per_node; its
/// adapter is determined by its position among the node's GPUs. Only nodes with ranks are built.
///
/// SimGrid's links have no latency: RankNetwork adds it when a flow has ended. Flows then share a
/// link equally, however long their routes are, and a cable accepts the next message when the last
/// byte of the previous one has left, not when it has arrived.
class Platform {
 public:
  using Host = simgrid_compat::s4u::Host;
  using Link = simgrid_compat::s4u::Link;

  /// Builds the platform in `engine`, before the first actor. Throws like `check_cluster`, and
  /// ConfigError for a traffic rate on a platform from a file.
  Platform(SimEngine& engine, const ClusterSpec& cluster, int ranks,
           const std::vector<TrafficFlow>& traffic = {});

  int ranks() const noexcept { return static_cast<int>(ranks_); }
  /// The host of the rank's actor.
  Host* host(int rank) const { return ends(rank, rank).first; }
  /// The hosts between which messages from one rank to another are flows.
  std::pair<Host*, Host*> ends(int from, int to) const;
  bool same_node(int a, int b) const noexcept { return node_of(a) == node_of(b); }
  /// The links of the route, in order.
  std::vector<Link*> route(int from, int to) const;
  /// Latency from one rank to another, including the software's part: the time of an empty message.
  Seconds latency(int from, int to) const;
  /// Adds latency to everything that passes this link. Call it before any latency is queried.
  void add_latency(const Link* link, Seconds more);
  /// Background traffic enters and leaves a node at its first adapter, or, if the fabric ends at
  /// the node itself, there; it does not use the GPUs' cables. Each flow has its own hosts, the
  /// first of which has a link with the flow's rate, because SimGrid 3.32 ignores a rate limit on
  /// such flows.
  struct Traffic {
    TrafficFlow flow;
    Host* from = nullptr;
    Host* to = nullptr;
  };
  const std::vector<Traffic>& traffic() const noexcept { return traffic_; }

 private:
  using Zone = simgrid_compat::Zone;
  using NetZone = simgrid_compat::s4u::NetZone;
  using Cable = simgrid_compat::s4u::SplitDuplexLink;

  std::int64_t node_of(int rank) const noexcept { return rank / cluster_.gpus_per_node; }
  void load_file(SimEngine& engine);
  Cable* add_cable(NetZone* zone, const std::string& name, const LinkSpec& spec);
  void build_inside(SimEngine& engine, NetZone* top);
  void build_cube_mesh(NetZone* top, std::int64_t node);
  void build_pcie_tree(NetZone* top, std::int64_t node);
  void build_fabric(SimEngine& engine, NetZone* top);
  void build_leaves(SimEngine& engine, NetZone* top);
  Zone add_ports(SimEngine& engine, NetZone* parent, std::int64_t node);
  void add_port(NetZone* zone, std::int64_t rank, bool with_adapter);
  void add_traffic(NetZone* zone, std::int64_t node, const simgrid_compat::DirectedLinks& links);
  simgrid_compat::DirectedLinks to_cpu(std::int64_t node) const;
  std::int64_t last_rank(std::int64_t node) const;

  ClusterSpec cluster_;
  std::int64_t ranks_;
  std::int64_t nodes_;              // with ranks
  std::vector<Host*> inside_;       // by rank: its host inside the node
  std::vector<Host*> ports_;        // by rank: its host at the fabric; empty with one node
  std::vector<Cable*> gpu_cables_;  // by rank; empty in a cube mesh
  std::vector<Link*> cpus_;         // by node; empty without a host bandwidth
  std::vector<Cable*> adapters_;    // of the node under construction
  std::vector<Traffic> traffic_;
  std::unordered_map<const Link*, Seconds> latencies_;
};

}  // namespace gradsync
