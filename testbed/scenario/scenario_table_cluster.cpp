// The rows of "cluster" and "communication": the simulated machines and library.

#include "gradsync/testbed/scenario/scenario_codec.hpp"

namespace gradsync::scenario_table {

template <>
struct EnumNames<ClusterSpec::Library> {
  static constexpr std::array<std::pair<const char*, ClusterSpec::Library>, 3> kNames{
      {{"gloo", ClusterSpec::Library::kGloo},
       {"nccl", ClusterSpec::Library::kNccl},
       {"rccl", ClusterSpec::Library::kRccl}}};
};

template <>
struct EnumNames<ClusterSpec::Generation> {
  static constexpr std::array<std::pair<const char*, ClusterSpec::Generation>, 4> kNames{
      {{"volta", ClusterSpec::Generation::kVolta},
       {"ampere", ClusterSpec::Generation::kAmpere},
       {"hopper", ClusterSpec::Generation::kHopper},
       {"blackwell", ClusterSpec::Generation::kBlackwell}}};
};

template <>
struct EnumNames<ClusterSpec::CpuVendor> {
  static constexpr std::array<std::pair<const char*, ClusterSpec::CpuVendor>, 3> kNames{
      {{"intel", ClusterSpec::CpuVendor::kIntel},
       {"amd", ClusterSpec::CpuVendor::kAmd},
       {"other", ClusterSpec::CpuVendor::kOther}}};
};

template <>
struct EnumNames<ClusterSpec::NodeTopology> {
  static constexpr std::array<std::pair<const char*, ClusterSpec::NodeTopology>, 4> kNames{
      {{"switch", ClusterSpec::NodeTopology::kSwitch},
       {"cube_mesh", ClusterSpec::NodeTopology::kCubeMesh},
       {"pcie_tree", ClusterSpec::NodeTopology::kPcieTree},
       {"full_mesh", ClusterSpec::NodeTopology::kFullMesh}}};
};

template <>
struct EnumNames<ClusterSpec::NetworkKind> {
  using E = ClusterSpec::NetworkKind;
  static constexpr std::array<std::pair<const char*, E>, 7> kNames{
      {{"as_described", E::kAsDescribed},
       {"infiniband", E::kInfiniband},
       {"roce", E::kRoce},
       {"efa", E::kEfa},
       {"tcpx", E::kTcpx},
       {"slingshot", E::kSlingshot},
       {"tcp", E::kTcp}}};
};

template <>
struct EnumNames<ClusterSpec::Topology> {
  static constexpr std::array<std::pair<const char*, ClusterSpec::Topology>, 5> kNames{
      {{"star", ClusterSpec::Topology::kStar},
       {"fat_tree", ClusterSpec::Topology::kFatTree},
       {"leaf_spine", ClusterSpec::Topology::kLeafSpine},
       {"torus", ClusterSpec::Topology::kTorus},
       {"dragonfly", ClusterSpec::Topology::kDragonfly}}};
};

template <>
struct EnumNames<CommunicationSpec::Algorithm> {
  using E = CommunicationSpec::Algorithm;
  static constexpr std::array<std::pair<const char*, E>, 8> kNames{
      {{"auto", E::kAuto},
       {"ring", E::kRing},
       {"tree", E::kTree},
       {"nvls", E::kNvls},
       {"nvls_tree", E::kNvlsTree},
       {"bcube", E::kBcube},
       {"halving_doubling", E::kHalvingDoubling},
       {"hierarchical", E::kHierarchical}}};
};

template <>
struct EnumNames<CommunicationSpec::Protocol> {
  using E = CommunicationSpec::Protocol;
  static constexpr std::array<std::pair<const char*, E>, 4> kNames{
      {{"auto", E::kAuto}, {"ll", E::kLl}, {"ll128", E::kLl128}, {"simple", E::kSimple}}};
};

namespace {

template <class Bandwidth, class Latency>
Section link(std::string name, std::string description, Bandwidth bandwidth, Latency latency,
             std::vector<Json> bandwidths, std::vector<Json> latencies) {
  return {.name = std::move(name),
          .description = std::move(description),
          .fields = {field("bandwidth", bandwidth, above(0), "Bandwidth in each direction.",
                           {.examples = std::move(bandwidths)}),
                     field("latency", latency, at_least(0), "Latency of a message on this link.",
                           {.examples = std::move(latencies)})}};
}

/// An optional path; null if unset.
Field platform_file() {
  Field row = field("platform_file", SCENARIO_MEMBER(cluster.platform_file), existing_file(),
                    "A SimGrid platform (XML) that replaces nodes, links and topology; its hosts, "
                    "in the order of the file, are the ranks.");
  row.write = [](const Scenario& scenario) {
    const std::string& file = scenario.cluster.platform_file;
    return file.empty() ? Json(nullptr) : Json(file);
  };
  return row;
}

Section software_section() {
  return {
      .name = "software",
      .description =
          "Overhead of the software of a rank, in addition to the links. Calibration fits these "
          "values.",
      .fields =
          {
              field("per_operation", SCENARIO_MEMBER(cluster.software.per_operation), at_least(0),
                    "Overhead of each collective: launch and synchronization.",
                    {.examples = {"17us"}}),
              field("per_message", SCENARIO_MEMBER(cluster.software.per_message), at_least(0),
                    "Overhead of each message.", {.examples = {"3us"}}),
              field("host_bandwidth", SCENARIO_MEMBER(cluster.software.host_bandwidth), above(0),
                    "Bytes per second that the CPUs of one node send, receive and reduce, shared "
                    "by its ranks and by both directions; null: no limit. A message counts once in "
                    "each node that it touches.",
                    {.examples = {"1.2GBps"}}),
              field("hop_latency_scale", SCENARIO_MEMBER(cluster.software.hop_latency_scale),
                    at_least(0),
                    "Multiplies the hop latencies in NCCL's own tables. These were made for "
                    "choosing an algorithm, and are too short for predicting its time."),
          },
  };
}

Section network_section() {
  return {
      .name = "network",
      .description =
          "What NCCL gets from the network between nodes, besides the line rate of `inter_node`. "
          "A null value is taken from the network's kind, as estimated over published tables "
          "([clusters.md](clusters.md)).",
      .fields =
          {
              field(
                  "kind", SCENARIO_MEMBER(cluster.network.kind), any(),
                  "`as_described`: `inter_node` is what messages get, nothing is added. `tcpx` is "
                  "GPUDirect-TCPX and TCPXO."),
              field("payload", SCENARIO_MEMBER(cluster.network.payload), above(0),
                    "Share of the line rate available to the payload.", {.examples = {0.93}}),
              field("latency", SCENARIO_MEMBER(cluster.network.latency), at_least(0),
                    "Added to each hop between nodes.", {.examples = {"7us"}}),
              field("handshake", SCENARIO_MEMBER(cluster.network.handshake), at_least(0),
                    "Added to each hop between nodes of LL128 and Simple, whose messages are long.",
                    {.examples = {"60us"}}),
          },
  };
}

Section kernels_section() {
  return {
      .name = "nccl",
      .description =
          "The speed of NCCL's kernels on these GPUs. A null value is taken from the generation, "
          "as estimated over published tables ([clusters.md](clusters.md)).",
      .fields =
          {
              field("launch", SCENARIO_MEMBER(cluster.nccl.launch), at_least(0),
                    "From the call until the first byte moves.", {.examples = {"1us"}}),
              field("hop_scale", SCENARIO_MEMBER(cluster.nccl.hop_scale), at_least(0),
                    "Multiplies the latencies of a hop inside a node in NCCL's tables.",
                    {.examples = {3.1}}),
              field("ll_bandwidth", SCENARIO_MEMBER(cluster.nccl.ll_bandwidth), above(0),
                    "Bus bandwidth of LL inside a node.", {.examples = {"46GBps"}}),
              field("channel_bandwidth", SCENARIO_MEMBER(cluster.nccl.channel_bandwidth), above(0),
                    "Of one channel of a tree with Simple; other protocols' are in proportion.",
                    {.examples = {"12GBps"}}),
              field("nvls_bandwidth", SCENARIO_MEMBER(cluster.nccl.nvls_bandwidth), above(0),
                    "Bytes of a message per second that the kernels of one GPU move with NVLS.",
                    {.examples = {"294GBps"}}),
              field("nvls_step", SCENARIO_MEMBER(cluster.nccl.nvls_step), at_least(0),
                    "Time per head and round of chunks with NVLS.", {.examples = {"0.5us"}}),
              field("nvls", SCENARIO_MEMBER(cluster.nccl.nvls), any(),
                    "Use NVLS where the switches support it (NCCL_NVLS_ENABLE). Off on clouds whose "
                    "network plugin turns it off."),
          },
  };
}

Section dragonfly_section() {
  return {
      .name = "dragonfly",
      .description =
          "The dragonfly of `\"topology\": \"dragonfly\"`: all-to-all between groups, "
          "between the chassis of a group and between the routers of a chassis.",
      .fields =
          {
              field("groups", SCENARIO_MEMBER(cluster.dragonfly_groups), at_least(1), "Groups."),
              field("chassis", SCENARIO_MEMBER(cluster.dragonfly_chassis), at_least(1),
                    "Chassis of a group."),
              field("routers", SCENARIO_MEMBER(cluster.dragonfly_routers), at_least(1),
                    "Routers of a chassis."),
              field("nodes", SCENARIO_MEMBER(cluster.dragonfly_nodes), at_least(1),
                    "Nodes of a router."),
          },
  };
}

std::vector<Field> cluster_fields() {
  return {
      field("name", SCENARIO_MEMBER(cluster.name), any(), "Name of the description."),
      field("nodes", SCENARIO_MEMBER(cluster.nodes), at_least(1), "Number of nodes.",
            {.default_text = "as many as the ranks need", .other_names = {"nnodes"}}),
      field("gpus_per_node", SCENARIO_MEMBER(cluster.gpus_per_node), at_least(1),
            "GPUs of a node: ranks that share its network. Ranks fill the nodes in order.",
            {.other_names = {"nproc_per_node", "gpus"}}),
      field("nics_per_node", SCENARIO_MEMBER(cluster.nics_per_node), at_least(1),
            "Network adapters (rails) of a node, each with a cable of `inter_node`. They are dealt "
            "to the node's GPUs in order.",
            {.other_names = {"nics", "rails"}}),
      field("compute_rate", SCENARIO_MEMBER(cluster.compute_rate), above(0),
            "Floating-point operations per second of one GPU, for models that are computed (a "
            "replayed model has its times in its profile).",
            {.examples = {"50Gf", "15Tf"}, .other_names = {"flops"}}),
      field("library", SCENARIO_MEMBER(cluster.library), any(),
            "The library whose algorithms and costs are simulated. With `nccl`, NCCL's own cost "
            "model chooses algorithm and protocol; `rccl` is AMD's library.",
            {.default_text = "`nccl` where the cluster describes GPUs (`generation`, "
                             "`node_topology`, `network`, ...), else `gloo`"}),
      field("generation", SCENARIO_MEMBER(cluster.generation), any(),
            "Generation of the GPUs; NCCL's constants depend on it."),
      field("cpu_vendor", SCENARIO_MEMBER(cluster.cpu_vendor), any(),
            "Vendor of the hosts' CPUs; NCCL's constants depend on it."),
      field("gpu_direct", SCENARIO_MEMBER(cluster.gpu_direct), any(),
            "Adapters read and write GPU memory directly (GPUDirect RDMA). Without it NCCL does "
            "not use LL128 between nodes."),
      field("gpu_peer_to_peer", SCENARIO_MEMBER(cluster.gpu_peer_to_peer), any(),
            "GPUs without NVLink access each other's memory over PCIe. If false, their messages "
            "go through the host's memory."),
      field(
          "node_topology", SCENARIO_MEMBER(cluster.node_topology), any(),
          "Links inside a node. `switch`: each GPU has its own cable to a switch that is never the "
          "bottleneck (NVSwitch, or the memory of a machine without GPUs). `cube_mesh`: the NVLinks "
          "of a DGX-1 V100 (8 GPUs, each with one or two links to four others). `full_mesh`: a link "
          "from each GPU to every other (xGMI; the four GPUs of a GH200 node). `pcie_tree`: see "
          "`pcie_tree`."),
      field("topology", SCENARIO_MEMBER(cluster.topology), any(),
            "How the nodes are joined. `star`: one switch that is never the bottleneck. "
            "`leaf_spine`, `fat_tree`, `torus`, `dragonfly`: see the object of that name."),
      platform_file(),
  };
}

Section pcie_tree_section() {
  return {
      .name = "pcie_tree",
      .description =
          "The PCIe tree of `\"node_topology\": \"pcie_tree\"`: GPUs on PCIe "
          "switches, the switches dealt to two sockets.",
      .fields = {field("gpus_per_switch", SCENARIO_MEMBER(cluster.pcie_gpus_per_switch),
                       at_least(1), "GPUs that share a cable of `intra_node` to their socket.")},
      .sections = {link("socket", "The link between the two sockets (QPI, UPI, Infinity Fabric).",
                        SCENARIO_MEMBER(cluster.pcie_socket.bandwidth),
                        SCENARIO_MEMBER(cluster.pcie_socket.latency), {"10GBps"}, {"1us"})}};
}

Section leaf_spine_section() {
  return {.name = "leaf_spine",
          .description =
              "The fabric of `\"topology\": \"leaf_spine\"`: leaf switches under a spine that "
              "is never the bottleneck. Traffic is spread evenly over the uplinks of a leaf.",
          .fields = {
              field("nodes_per_leaf", SCENARIO_MEMBER(cluster.leaf_nodes), at_least(1),
                    "Nodes under one leaf switch."),
              field("oversubscription", SCENARIO_MEMBER(cluster.leaf_oversubscription), above(0),
                    "Bandwidth of the nodes of a leaf divided by the bandwidth of its "
                    "uplinks.",
                    {.examples = {2, 4}}),
          }};
}

Section fat_tree_section() {
  return {.name = "fat_tree",
          .description =
              "The fat tree of `\"topology\": \"fat_tree\"`: three lists with an entry for "
              "each level of switches, from the bottom.",
          .fields = {
              field("down", SCENARIO_MEMBER(cluster.fat_tree_down), at_least(1),
                    "Children of a switch.", {.examples = {Json::array({16, 8})}}),
              field("up", SCENARIO_MEMBER(cluster.fat_tree_up), at_least(1), "Parents of a child.",
                    {.examples = {Json::array({1, 8})}}),
              field("links", SCENARIO_MEMBER(cluster.fat_tree_links), at_least(1),
                    "Parallel cables to each parent.", {.examples = {Json::array({1, 1})}}),
          }};
}

Section torus_section() {
  return {.name = "torus",
          .description =
              "The torus of `\"topology\": \"torus\"`, routed dimension by "
              "dimension.",
          .fields = {field("dimensions", SCENARIO_MEMBER(cluster.torus_dimensions), at_least(1),
                           "Nodes along each dimension.", {.examples = {Json::array({4, 4, 2})}})}};
}

}  // namespace

Section cluster_section() {
  return {
      .name = "cluster",
      .description =
          "The machines that are simulated; real backends ignore this section. Either an object "
          "with the keys below, or the path of a file that holds one "
          "(`\"clusters/dgx-a100.json\"`). The defaults describe a laptop, whose ranks communicate "
          "over TCP inside one machine.",
      .fields = cluster_fields(),
      .sections =
          {
              link("intra_node",
                   "The link from each GPU to the switch of its node (NVLink, PCIe, memory); in a "
                   "mesh, each single link.",
                   SCENARIO_MEMBER(cluster.intra_node.bandwidth),
                   SCENARIO_MEMBER(cluster.intra_node.latency), {"300GBps"}, {"3us"}),
              pcie_tree_section(),
              link("inter_node",
                   "The link from each network adapter to the fabric (InfiniBand, Ethernet), and "
                   "each link between switches of the fabric.",
                   SCENARIO_MEMBER(cluster.inter_node.bandwidth),
                   SCENARIO_MEMBER(cluster.inter_node.latency), {"25GBps", "200Gbps"}, {"5us"}),
              leaf_spine_section(),
              fat_tree_section(),
              torus_section(),
              dragonfly_section(),
              software_section(),
              network_section(),
              kernels_section(),
          },
      .accepts_file = true,
  };
}

Section communication_section() {
  return {
      .name = "communication",
      .description =
          "The algorithm and protocol that the simulated library uses; a real backend makes its "
          "own choice. What the library or the cluster does not support is refused.",
      .fields =
          {
              field("algorithm", SCENARIO_MEMBER(communication.algorithm), any(),
                    "Algorithm of all-reduces. `auto`: Gloo's ring, or NCCL's choice. Gloo has "
                    "`ring`, `bcube`, `halving_doubling`, `hierarchical`; NCCL has `ring`, `tree`, "
                    "`nvls` (one node), `nvls_tree` (several nodes), `hierarchical`."),
              field("protocol", SCENARIO_MEMBER(communication.protocol), any(),
                    "NCCL's protocol: `ll`, `ll128` or `simple`."),
          },
  };
}

}  // namespace gradsync::scenario_table
