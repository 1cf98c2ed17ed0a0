// The rows of "cluster" and "communication": the machines and the library that are simulated.

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
          .fields = {field("bandwidth", bandwidth, above(0), "In each direction.",
                           {.examples = std::move(bandwidths)}),
                     field("latency", latency, at_least(0), "Of a message on this link.",
                           {.examples = std::move(latencies)})}};
}

/// An optional path: null where there is none.
Field platform_file() {
  Field row = field("platform_file", SCENARIO_MEMBER(cluster.platform_file), existing_file(),
                    "A SimGrid platform (XML) in place of nodes, links and topology; its hosts in "
                    "the order of the file are the ranks.");
  row.write = [](const Scenario& scenario) {
    const std::string& file = scenario.cluster.platform_file;
    return file.empty() ? Json(nullptr) : Json(file);
  };
  return row;
}

Section software_section() {
  return {
      .name = "software",
      .description = "What the software of a rank adds to the wires. Calibration fits these.",
      .fields =
          {
              field("per_operation", SCENARIO_MEMBER(cluster.software.per_operation), at_least(0),
                    "Added to each collective: launch and synchronization.",
                    {.examples = {"17us"}}),
              field("per_message", SCENARIO_MEMBER(cluster.software.per_message), at_least(0),
                    "Added to each message.", {.examples = {"3us"}}),
              field("host_bandwidth", SCENARIO_MEMBER(cluster.software.host_bandwidth), above(0),
                    "Bytes that the CPUs of one node send or receive (and reduce) in a second, "
                    "shared by its ranks in both directions; null: without limit. A message counts "
                    "once in each node that it touches.",
                    {.examples = {"1.2GBps"}}),
              field("hop_latency_scale", SCENARIO_MEMBER(cluster.software.hop_latency_scale),
                    at_least(0),
                    "Multiplies the latencies of a hop in NCCL's own tables, which choose well and "
                    "predict short."),
          },
  };
}

Section network_section() {
  return {
      .name = "network",
      .description =
          "What NCCL gets from the network between nodes, beside the line rate of `inter_node`. "
          "Each value that is null is that of the kind, estimated over published tables "
          "([clusters.md](clusters.md)).",
      .fields =
          {
              field(
                  "kind", SCENARIO_MEMBER(cluster.network.kind), any(),
                  "`as_described`: `inter_node` is what messages get, nothing is added. `tcpx` is "
                  "GPUDirect-TCPX and TCPXO."),
              field("payload", SCENARIO_MEMBER(cluster.network.payload), above(0),
                    "Share of the line rate that the payload gets.", {.examples = {0.93}}),
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
          "How fast NCCL's kernels are on these GPUs. Each value that is null is that of the "
          "generation, estimated over published tables ([clusters.md](clusters.md)).",
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
                    "Bytes of a message a second that the kernels of a GPU move with NVLS.",
                    {.examples = {"294GBps"}}),
              field("nvls_step", SCENARIO_MEMBER(cluster.nccl.nvls_step), at_least(0),
                    "Of each head in each round of chunks with NVLS.", {.examples = {"0.5us"}}),
              field("nvls", SCENARIO_MEMBER(cluster.nccl.nvls), any(),
                    "Switches that can, add up (NCCL_NVLS_ENABLE). Off on clouds whose network "
                    "plugin asks for it."),
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
            "Floating-point operations a second of one GPU, for models that are computed (a "
            "replayed one has its times in its profile).",
            {.examples = {"50Gf", "15Tf"}, .other_names = {"flops"}}),
      field("library", SCENARIO_MEMBER(cluster.library), any(),
            "Whose algorithms and costs are simulated. `nccl` chooses algorithm and protocol by "
            "NCCL's own cost model; `rccl` is AMD's.",
            {.default_text = "`nccl` where the cluster describes GPUs (`generation`, "
                             "`node_topology`, `network`, ...), else `gloo`"}),
      field("generation", SCENARIO_MEMBER(cluster.generation), any(),
            "Of the GPUs; NCCL's constants go by it."),
      field("cpu_vendor", SCENARIO_MEMBER(cluster.cpu_vendor), any(),
            "Of the hosts; NCCL's constants go by it."),
      field("gpu_direct", SCENARIO_MEMBER(cluster.gpu_direct), any(),
            "Adapters read and write GPU memory (GPUDirect RDMA). Without it NCCL has no LL128 "
            "between nodes."),
      field("gpu_peer_to_peer", SCENARIO_MEMBER(cluster.gpu_peer_to_peer), any(),
            "GPUs without NVLink reach each other's memory over PCIe. Without it their messages go "
            "by way of the host's memory."),
      field(
          "node_topology", SCENARIO_MEMBER(cluster.node_topology), any(),
          "Inside a node: `switch`, each GPU with a cable of its own to a switch that is never "
          "the bottleneck (NVSwitch; the memory of a machine without GPUs), `cube_mesh`, the "
          "NVLinks of a DGX-1 V100 (8 GPUs, one or two links to each of four others), `full_mesh`, "
          "a link from each GPU to each other (xGMI; the four GPUs of a GH200 node), or "
          "`pcie_tree`, as described under `pcie_tree`."),
      field("topology", SCENARIO_MEMBER(cluster.topology), any(),
            "How the nodes are joined: `star`, one switch that is never the bottleneck, or what "
            "the object of that name describes: `leaf_spine`, `fat_tree`, `torus`, `dragonfly`."),
      platform_file(),
  };
}

}  // namespace

Section cluster_section() {
  return {
      .name = "cluster",
      .description =
          "The machines that the simulator stands for; real backends do not look at it. Either an "
          "object with the keys below, or the path of a file that holds one "
          "(`\"clusters/dgx-a100.json\"`). The defaults are a laptop: ranks that talk over TCP "
          "inside one machine.",
      .fields = cluster_fields(),
      .sections =
          {
              link("intra_node",
                   "From each GPU to its node's switch (NVLink, PCIe, memory); in a mesh each "
                   "single "
                   "link.",
                   SCENARIO_MEMBER(cluster.intra_node.bandwidth),
                   SCENARIO_MEMBER(cluster.intra_node.latency), {"300GBps"}, {"3us"}),
              {.name = "pcie_tree",
               .description = "The PCIe tree of `\"node_topology\": \"pcie_tree\"`: GPUs on PCIe "
                              "switches, the switches dealt to two sockets.",
               .fields = {field("gpus_per_switch", SCENARIO_MEMBER(cluster.pcie_gpus_per_switch),
                                at_least(1),
                                "GPUs that share a cable of `intra_node` to their socket.")},
               .sections = {link("socket", "Between the two sockets (QPI, UPI, Infinity Fabric).",
                                 SCENARIO_MEMBER(cluster.pcie_socket.bandwidth),
                                 SCENARIO_MEMBER(cluster.pcie_socket.latency), {"10GBps"},
                                 {"1us"})}},
              link("inter_node",
                   "From each network adapter to the fabric (InfiniBand, Ethernet), and between "
                   "the fabric's switches.",
                   SCENARIO_MEMBER(cluster.inter_node.bandwidth),
                   SCENARIO_MEMBER(cluster.inter_node.latency), {"25GBps", "200Gbps"}, {"5us"}),
              {.name = "leaf_spine",
               .description =
                   "The fabric of `\"topology\": \"leaf_spine\"`: leaf switches under a spine that "
                   "is never the bottleneck, traffic spread evenly over a leaf's cables up.",
               .fields =
                   {
                       field("nodes_per_leaf", SCENARIO_MEMBER(cluster.leaf_nodes), at_least(1),
                             "Nodes under one leaf switch."),
                       field("oversubscription", SCENARIO_MEMBER(cluster.leaf_oversubscription),
                             above(0),
                             "Bandwidth of a leaf's nodes by the bandwidth of its cables up.",
                             {.examples = {2, 4}}),
                   }},
              {.name = "fat_tree",
               .description =
                   "The fat tree of `\"topology\": \"fat_tree\"`: three lists with an entry for "
                   "each level of switches, from the bottom.",
               .fields =
                   {
                       field("down", SCENARIO_MEMBER(cluster.fat_tree_down), at_least(1),
                             "Children of a switch.", {.examples = {Json::array({16, 8})}}),
                       field("up", SCENARIO_MEMBER(cluster.fat_tree_up), at_least(1),
                             "Parents of a child.", {.examples = {Json::array({1, 8})}}),
                       field("links", SCENARIO_MEMBER(cluster.fat_tree_links), at_least(1),
                             "Parallel cables to each parent.",
                             {.examples = {Json::array({1, 1})}}),
                   }},
              {.name = "torus",
               .description = "The torus of `\"topology\": \"torus\"`, routed dimension by "
                              "dimension.",
               .fields = {field("dimensions", SCENARIO_MEMBER(cluster.torus_dimensions),
                                at_least(1), "Nodes along each dimension.",
                                {.examples = {Json::array({4, 4, 2})}})}},
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
          "Which way the simulated library takes; real backends have their own choice. A way that "
          "the library or the cluster does not have is refused.",
      .fields =
          {
              field("algorithm", SCENARIO_MEMBER(communication.algorithm), any(),
                    "Of all-reduces. `auto`: Gloo's ring, or NCCL's choice. Gloo: `ring`, `bcube`, "
                    "`halving_doubling`, `hierarchical`; NCCL: `ring`, `tree`, `nvls` (one node), "
                    "`nvls_tree` (several), `hierarchical`."),
              field("protocol", SCENARIO_MEMBER(communication.protocol), any(),
                    "NCCL's protocol: `ll`, `ll128` or `simple`."),
          },
  };
}

}  // namespace gradsync::scenario_table
