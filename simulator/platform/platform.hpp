#pragma once

#include <unordered_map>
#include <vector>

#include "gradsync/simulator/kernel/sim_engine.hpp"
#include "gradsync/simulator/platform/traffic.hpp"
#include "gradsync/testbed/scenario/scenario.hpp"

namespace gradsync {

/// Throws ConfigError with the pointer of the offending value when `ranks` ranks do not fit on
/// `cluster`, or the fabric's description does not give its nodes a place.
void check_cluster(const ClusterSpec& cluster, int ranks);

/// The cluster as SimGrid sees it, and where each rank lives.
///
///     rank --[intra_node cable]-- node switch (or PCIe tree, or cube mesh)
///     rank --[intra_node cable]--[adapter's inter_node cable]-- fabric
///
/// Every cable is full duplex: its bandwidth holds for each direction. Switches add nothing. So a
/// message between GPUs of one node has latency 2 * intra, and one between nodes 2 * intra + 2 *
/// inter on a star; every cable between switches of a fabric adds inter again. A host bandwidth is
/// one more link of the node, that all its ranks share in both directions; a message counts once in
/// each node that it touches.
/// Rank r is GPU r % gpus_per_node of node r / gpus_per_node; its adapter is that of its place
/// among the node's GPUs. Only nodes that have ranks are built.
///
/// SimGrid's links have no latency: RankNetwork adds it when a flow has ended. Flows then share a
/// link equally, however long their ways are, and a cable takes the next message when the last
/// byte of the one before has left, not when it has arrived.
class Platform {
 public:
  using Host = simgrid_compat::s4u::Host;
  using Link = simgrid_compat::s4u::Link;

  /// Builds it in `engine`, before the first actor. As `check_cluster`; throws ConfigError for a
  /// rate of traffic on a platform from a file.
  Platform(SimEngine& engine, const ClusterSpec& cluster, int ranks,
           const std::vector<TrafficFlow>& traffic = {});

  int ranks() const noexcept { return static_cast<int>(ranks_); }
  /// Where the rank's actor runs.
  Host* host(int rank) const { return ends(rank, rank).first; }
  /// The hosts between which a message from one rank to another is a flow.
  std::pair<Host*, Host*> ends(int from, int to) const;
  bool same_node(int a, int b) const noexcept { return node_of(a) == node_of(b); }
  /// The links on the way, in order.
  std::vector<Link*> route(int from, int to) const;
  /// Of the way from one rank to another, with the software's part: the time that a message of no
  /// bytes takes.
  Seconds latency(int from, int to) const;
  /// What passes this link takes so much longer. Before a latency has been asked for.
  void add_latency(const Link* link, Seconds more);
  /// Traffic of others enters and leaves a node at its first adapter, or, where the fabric ends at
  /// the node itself, there; it does not pass the GPUs' cables. Each flow has hosts of its own, of
  /// which the first has a link of the flow's rate: SimGrid 3.32 does not heed a rate of such
  /// flows.
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
  void add_traffic(NetZone* zone, std::int64_t node, const simgrid_compat::Links& links);
  simgrid_compat::Links to_cpu(std::int64_t node) const;
  std::int64_t last_rank(std::int64_t node) const;

  ClusterSpec cluster_;
  std::int64_t ranks_;
  std::int64_t nodes_;              // that have ranks
  std::vector<Host*> inside_;       // by rank: its place inside the node
  std::vector<Host*> ports_;        // by rank: its place at the fabric; empty with one node
  std::vector<Cable*> gpu_cables_;  // by rank; none in a cube mesh
  std::vector<Link*> cpus_;         // by node; empty without a host bandwidth
  std::vector<Cable*> adapters_;    // of the node under construction
  std::vector<Traffic> traffic_;
  std::unordered_map<const Link*, Seconds> latencies_;
};

}  // namespace gradsync
