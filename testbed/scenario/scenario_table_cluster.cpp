// The rows of "cluster" and "communication": the simulated machines and library.

#include "gradsync/testbed/scenario/scenario_codec.hpp"

namespace gradsync::scenario_table {

template <>
struct EnumNames<ClusterSpec::Library> {
  static constexpr std::array<std::pair<const char*, ClusterSpec::Library>, 2> kNames{
      {{"gloo", ClusterSpec::Library::kGloo}, {"nccl", ClusterSpec::Library::kNccl}}};
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
  static constexpr std::array<std::pair<const char*, ClusterSpec::NodeTopology>, 3> kNames{
      {{"switch", ClusterSpec::NodeTopology::kSwitch},
       {"cube_mesh", ClusterSpec::NodeTopology::kCubeMesh},
       {"pcie_tree", ClusterSpec::NodeTopology::kPcieTree}}};
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
            "model chooses algorithm and protocol."),
      field("generation", SCENARIO_MEMBER(cluster.generation), any(),
            "Generation of the GPUs; NCCL's constants depend on it."),
      field("cpu_vendor", SCENARIO_MEMBER(cluster.cpu_vendor), any(),
            "Vendor of the hosts' CPUs; NCCL's constants depend on it."),
      field("gpu_direct", SCENARIO_MEMBER(cluster.gpu_direct), any(),
            "Adapters read and write GPU memory directly (GPUDirect RDMA). Without it NCCL does "
            "not use LL128 between nodes."),
      field("node_topology", SCENARIO_MEMBER(cluster.node_topology), any(),
            "Links inside a node. `switch`: each GPU has its own cable to a switch that is never "
            "the bottleneck (NVSwitch, or the memory of a machine without GPUs). `cube_mesh`: the "
            "NVLinks of a DGX-1 V100 (8 GPUs, each with one or two links to four others). "
            "`pcie_tree`: see `pcie_tree`."),
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
                   "cube mesh, each single NVLink.",
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
