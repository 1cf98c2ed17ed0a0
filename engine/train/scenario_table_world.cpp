// The rows of "cluster", "simulation", "gloo" and "output": the world of a run, and its files.

#include "engine/train/scenario_codec.hpp"

namespace gradsync::scenario_table {

template <>
struct EnumNames<ClusterSpec::Topology> {
  static constexpr std::array<std::pair<const char*, ClusterSpec::Topology>, 2> kNames{
      {{"star", ClusterSpec::Topology::kStar}, {"fat_tree", ClusterSpec::Topology::kFatTree}}};
};

template <>
struct EnumNames<Fidelity> {
  static constexpr std::array<std::pair<const char*, Fidelity>, 3> kNames{
      {{"auto", Fidelity::kAuto}, {"message", Fidelity::kMessage}, {"flow", Fidelity::kFlow}}};
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

}  // namespace

Section cluster_section() {
  return {
      .name = "cluster",
      .description =
          "The machines that the simulator stands for; real backends do not look at it. The "
          "defaults are a laptop: ranks that talk over TCP inside one machine.",
      .fields =
          {
              field("nodes", SCENARIO_MEMBER(cluster.nodes), at_least(1), "Number of nodes.",
                    {.default_text = "as many as the ranks need", .other_names = {"nnodes"}}),
              field("gpus_per_node", SCENARIO_MEMBER(cluster.gpus_per_node), at_least(1),
                    "GPUs of a node: ranks that share its network link. Ranks fill the nodes in "
                    "order.",
                    {.other_names = {"nproc_per_node", "gpus"}}),
              field("compute_rate", SCENARIO_MEMBER(cluster.compute_rate), above(0),
                    "Floating-point operations a second of one GPU, for models that are computed "
                    "(a replayed one has its times in its profile).",
                    {.examples = {"50Gf", "15Tf"}, .other_names = {"flops"}}),
              field("topology", SCENARIO_MEMBER(cluster.topology), any(),
                    "How the nodes are joined: `star`, one switch that is never the bottleneck, or "
                    "`fat_tree`, as described under `fat_tree`."),
          },
      .sections =
          {
              link("intra_node", "From each GPU to its node's switch (NVLink, PCIe, memory).",
                   SCENARIO_MEMBER(cluster.intra_node.bandwidth),
                   SCENARIO_MEMBER(cluster.intra_node.latency), {"300GBps"}, {"3us"}),
              link("inter_node", "From each node to the fabric (InfiniBand, Ethernet).",
                   SCENARIO_MEMBER(cluster.inter_node.bandwidth),
                   SCENARIO_MEMBER(cluster.inter_node.latency), {"25GBps", "200Gbps"}, {"5us"}),
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
          },
  };
}

Section simulation_section() {
  return {
      .name = "simulation",
      .description = "How finely the simulator looks.",
      .fields = {field(
          "fidelity", SCENARIO_MEMBER(fidelity), any(),
          "`message`: every message of Gloo's ring, with payload where the model has one; `flow`: "
          "one flow for each ring hop and bucket, for thousands of ranks; `auto`: `message` as "
          "long as it is quick.")},
  };
}

Section gloo_section() {
  return {
      .name = "gloo",
      .description = "The Gloo backend.",
      .fields =
          {
              field("threads", SCENARIO_MEMBER(gloo.threads), between(1, 2),
                    "Communication threads of a rank. With 1, collectives run in program order; "
                    "PyTorch has 2."),
              field("interface", SCENARIO_MEMBER(gloo.interface), any(),
                    "Network interface, as in GLOO_SOCKET_IFNAME; empty: the one that reaches "
                    "MASTER_ADDR.",
                    {.examples = {"eth0"}}),
          },
  };
}

Section output_section() {
  return {
      .name = "output",
      .description = "What the run directory holds.",
      .fields =
          {
              field("detail_ranks", SCENARIO_MEMBER(output.detail_ranks), at_least(0),
                    "Ranks whose steps and events are written one by one; the others are summed up "
                    "only."),
              field("flight_recorder_size", SCENARIO_MEMBER(output.flight_recorder_size),
                    at_least(1), "Collectives that each rank's flight record keeps."),
          },
  };
}

}  // namespace gradsync::scenario_table
