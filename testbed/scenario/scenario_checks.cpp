#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "gradsync/testbed/scenario/backend_descriptor.hpp"
#include "gradsync/testbed/scenario/scenario_reader.hpp"

namespace gradsync::scenario_table {
namespace {

/// The checks of one scenario. Each one reports the value that is most likely wrong and mentions
/// the value it conflicts with.
class Checks {
 public:
  Checks(const ScenarioDocument& document, const Scenario& scenario)
      : document_(document), s_(scenario), backend_(backend_descriptor(scenario.backend)) {}

  void run() const {
    check_model();
    check_data();
    check_sampler();
    check_optimizer();
    check_ddp();
    if (backend_.is_simulated) check_cluster();
    check_expect();
    check_faults(document_, s_);
    check_imperfections(document_, s_);
  }

 private:
  using Json = ScenarioDocument::Json;

  void check_model() const {
    if (s_.model.kind != ModelSpec::Kind::kTransformer) return;
    const TransformerOptions& t = s_.model.transformer;
    if (t.d_model % t.nhead != 0) {
      fail("/model/nhead", t.nhead, "a divisor of d_model" + because("/model/d_model", t.d_model));
    }
    const bool vocabulary_is_known = s_.data.kind != DataSpec::Kind::kRegistered;
    if (vocabulary_is_known && s_.data.vocab_size > t.vocab_size) {
      fail("/model/vocab_size", t.vocab_size,
           "at least that of the data" + because("/data/vocab_size", s_.data.vocab_size));
    }
  }

  void check_data() const {
    const bool replay = s_.model.kind == ModelSpec::Kind::kReplay;
    const bool indices = s_.data.kind == DataSpec::Kind::kIndices;
    if (replay && !indices) {
      const std::string kind = s_.data.kind == DataSpec::Kind::kRegistered ? s_.data.registered.kind
                               : s_.data.kind == DataSpec::Kind::kText     ? "text"
                                                                           : "synthetic_tokens";
      fail("/data/kind", kind, "\"indices\"",
           "a replayed model takes no inputs" + because("/model/kind", "replay"));
    }
    if (s_.model.kind == ModelSpec::Kind::kTransformer && indices) {
      fail("/data/kind", "indices", "\"synthetic_tokens\" or \"text\"",
           "the model takes tokens" + because("/model/kind", "transformer"));
    }
  }

  void check_ddp() const {
    const DdpSpec& ddp = s_.ddp;
    if (ddp.join.enable && s_.train.check_hashes) {
      fail("/train/check_hashes", true, "false",
           "ranks that ran out take part in no comparison" + because("/ddp/join/enable", true));
    }
    check_gradient_mean();
    const PowerSgdOptions& power_sgd = ddp.power_sgd;
    const bool uses_power_sgd =
        ddp.comm_hook == "power_sgd" || ddp.comm_hook == "batched_power_sgd";
    if (uses_power_sgd && power_sgd.start_powerSGD_iter < 2 &&
        (power_sgd.use_error_feedback || power_sgd.warm_start)) {
      fail("/ddp/power_sgd/start_powerSGD_iter", power_sgd.start_powerSGD_iter, "2 or more",
           "the buckets change shape before iteration 1; or turn off use_error_feedback and "
           "warm_start");
    }
  }

  void check_gradient_mean() const {
    const DdpSpec& ddp = s_.ddp;
    if (ddp.gradient_mean != GradientMean::kAverage) return;
    const auto refuse = [&](const std::string& why) {
      fail("/ddp/gradient_mean", "average", "\"predivide\"", why);
    };
    if (backend_.is_simulated) {
      const bool nccl = s_.cluster.library == ClusterSpec::Library::kNccl;
      const std::string library = nccl ? "nccl" : "gloo";
      if (!backend_descriptor(library).averages) {
        refuse("the simulated library has no average" + because("/cluster/library", library));
      }
    } else if (!backend_.averages) {
      refuse(s_.backend + " has no average" + because("/backend", s_.backend));
    }
    if (ddp.comm_hook) {
      refuse("a communication hook decides itself" + because("/ddp/comm_hook", *ddp.comm_hook));
    }
    if (ddp.join.enable && !ddp.join.divide_by_initial_world_size) {
      refuse("the average is over all ranks" +
             because("/ddp/join/divide_by_initial_world_size", false));
    }
  }

  void check_sampler() const {
    const SamplerSpec& sampler = s_.sampler;
    if (sampler.drop_last && !sampler.pad) {
      fail("/sampler/pad", false, "true",
           "samples that are dropped cannot be dealt out" + because("/sampler/drop_last", true));
    }
    // A size that is not known yet is checked by the sampler.
    const bool size_is_known = s_.data.has_known_size();
    if (sampler.drop_last && size_is_known && s_.data.samples < s_.ranks) {
      fail("/data/samples", s_.data.samples,
           "a sample for each rank or more" + because("/ranks", s_.ranks),
           "fewer are dropped" + because("/sampler/drop_last", true));
    }
    const std::vector<std::int64_t>& sizes = sampler.shard_sizes;
    if (sizes.empty()) return;
    if (sampler.drop_last) {
      fail("/sampler/drop_last", true, "false",
           "shard sizes leave nothing to drop" + because("/sampler/shard_sizes", sizes));
    }
    if (std::ssize(sizes) != s_.ranks) {
      fail("/sampler/shard_sizes", sizes, "a size for each rank" + because("/ranks", s_.ranks));
    }
    const std::int64_t sum = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
    if (size_is_known && sum > s_.data.samples) {
      fail("/sampler/shard_sizes", sizes,
           "sizes that add up to at most the number of samples" +
               because("/data/samples", s_.data.samples),
           fmt::format("their sum is {}", sum));
    }
  }

  void check_optimizer() const {
    const SgdOptions* sgd = std::get_if<SgdOptions>(&s_.optimizer.options);
    if (sgd == nullptr || !sgd->nesterov) return;
    const std::string hint = "Nesterov momentum needs it" + because("/optimizer/nesterov", true);
    if (!(sgd->momentum > 0)) fail("/optimizer/momentum", sgd->momentum, "a number > 0", hint);
    if (sgd->dampening != 0) fail("/optimizer/dampening", sgd->dampening, "0", hint);
  }

  void check_cluster() const {
    const ClusterSpec& c = s_.cluster;
    if (c.nodes * c.gpus_per_node < s_.ranks) {
      fail("/cluster/nodes", c.nodes,
           fmt::format("a GPU for each rank ({}, {})", mention("/ranks", s_.ranks),
                       mention("/cluster/gpus_per_node", c.gpus_per_node)),
           fmt::format("that takes {} nodes", (s_.ranks + c.gpus_per_node - 1) / c.gpus_per_node));
    }
    using Topology = ClusterSpec::Topology;
    if (c.topology == Topology::kFatTree) {
      check_fat_tree();
    } else if (!(c.fat_tree_down.empty() && c.fat_tree_up.empty() && c.fat_tree_links.empty())) {
      fail("/cluster/topology", "star", "\"fat_tree\"",
           "there is a /cluster/fat_tree; leave it out for another topology");
    }
    if (c.topology == Topology::kTorus) {
      require_places("/cluster/torus/dimensions", c.torus_dimensions, product(c.torus_dimensions));
    }
    if (c.topology == Topology::kDragonfly) {
      require_places("/cluster/dragonfly/nodes", c.dragonfly_nodes,
                     product({c.dragonfly_groups, c.dragonfly_chassis, c.dragonfly_routers,
                              c.dragonfly_nodes}));
    }
    if (c.node_topology == ClusterSpec::NodeTopology::kCubeMesh && c.gpus_per_node != 8) {
      fail("/cluster/gpus_per_node", c.gpus_per_node, "8, the GPUs of a DGX-1",
           "that is what a cube mesh joins" + because("/cluster/node_topology", "cube_mesh"));
    }
    check_algorithm();
  }

  /// Checks that the nodes fit into the fabric.
  void require_places(const std::string& pointer, const Json& value, double places) const {
    if (places >= static_cast<double>(s_.cluster.nodes)) return;
    fail(pointer, value, "a place for each node" + because("/cluster/nodes", s_.cluster.nodes),
         fmt::format("there are {:.0f}", places));
  }

  /// A double, because the product of a few counts may exceed 64 bits.
  static double product(const std::vector<std::int64_t>& counts) {
    return std::accumulate(
        counts.begin(), counts.end(), counts.empty() ? 0.0 : 1.0,
        [](double so_far, std::int64_t count) { return so_far * static_cast<double>(count); });
  }

  void check_algorithm() const {
    using Algorithm = CommunicationSpec::Algorithm;
    const ClusterSpec& c = s_.cluster;
    const bool nccl = c.library == ClusterSpec::Library::kNccl;
    const std::string by_library = because("/cluster/library", nccl ? "nccl" : "gloo");
    const auto only = [&](bool allowed, const char* name, const std::string& expected,
                          const std::string& hint) {
      if (!allowed) fail("/communication/algorithm", name, expected, hint);
    };
    const std::string gloo_has =
        "\"auto\", \"ring\", \"bcube\", \"halving_doubling\" or \"hierarchical\"";
    const std::string nccl_has =
        "\"auto\", \"ring\", \"tree\", \"nvls\", \"nvls_tree\" or \"hierarchical\"";
    const bool has_nvls = c.generation >= ClusterSpec::Generation::kHopper &&
                          c.node_topology == ClusterSpec::NodeTopology::kSwitch;
    const std::string no_nvls = "NVLS is a feature of NVSwitch nodes of Hopper and later GPUs";
    switch (s_.communication.algorithm) {
      case Algorithm::kTree:
        only(nccl, "tree", gloo_has, "it is NCCL's" + by_library);
        break;
      case Algorithm::kNvls:
        only(nccl, "nvls", gloo_has, "it is NCCL's" + by_library);
        only(has_nvls, "nvls", "an algorithm that the GPUs have", no_nvls);
        only(s_.ranks <= c.gpus_per_node, "nvls", "\"nvls_tree\"",
             "NVLS alone stays in one node" + because("/ranks", s_.ranks));
        break;
      case Algorithm::kNvlsTree:
        only(nccl, "nvls_tree", gloo_has, "it is NCCL's" + by_library);
        only(has_nvls, "nvls_tree", "an algorithm that the GPUs have", no_nvls);
        only(s_.ranks > c.gpus_per_node, "nvls_tree", "\"nvls\"",
             "there is one node, and no tree" + because("/ranks", s_.ranks));
        break;
      case Algorithm::kBcube:
        only(!nccl, "bcube", nccl_has, "it is Gloo's" + by_library);
        break;
      case Algorithm::kHalvingDoubling:
        only(!nccl, "halving_doubling", nccl_has, "it is Gloo's" + by_library);
        break;
      case Algorithm::kAuto:
      case Algorithm::kRing:
      case Algorithm::kHierarchical:
        break;
    }
    if (!nccl && s_.communication.protocol != CommunicationSpec::Protocol::kAuto) {
      fail("/communication/protocol", "auto", "\"auto\"", "protocols are NCCL's" + by_library);
    }
  }

  void check_fat_tree() const {
    const ClusterSpec& c = s_.cluster;
    if (c.fat_tree_down.empty()) {
      fail("/cluster/fat_tree/down", c.fat_tree_down,
           "a number for each level of switches" + because("/cluster/topology", "fat_tree"));
    }
    const auto same_length = [&](const char* pointer, const std::vector<std::int64_t>& list) {
      if (list.size() == c.fat_tree_down.size()) return;
      fail(pointer, list,
           "a number for each level of switches" +
               because("/cluster/fat_tree/down", c.fat_tree_down));
    };
    same_length("/cluster/fat_tree/up", c.fat_tree_up);
    same_length("/cluster/fat_tree/links", c.fat_tree_links);
    require_places("/cluster/fat_tree/down", c.fat_tree_down, product(c.fat_tree_down));
  }

  void check_expect() const {
    const ExpectSpec& e = s_.expect;
    if (e.loss_last_min && e.loss_last_max && *e.loss_last_min > *e.loss_last_max) {
      fail("/expect/loss/last_min", *e.loss_last_min,
           "at most the maximum" + because("/expect/loss/last_max", *e.loss_last_max));
    }
    for (std::size_t i = 0; i < e.diagnosis_ranks.size(); ++i) {
      if (e.diagnosis_ranks[i] >= s_.ranks) {
        fail(fmt::format("/expect/diagnosis/ranks/{}", i), e.diagnosis_ranks[i],
             "a rank of the run" + because("/ranks", s_.ranks));
      }
    }
    const bool meta = backend_.is_simulated && s_.model.kind == ModelSpec::Kind::kReplay &&
                      !s_.model.replay.payload;
    if (meta && e.parameter_hash) {
      fail("/expect/parameter_hash", *e.parameter_hash, "null",
           "in sim there is nothing to hash without payload" + because("/model/payload", false));
    }
  }

  /// The reason for an expectation: " (/ranks is 4)".
  std::string because(const std::string& pointer, const Json& value) const {
    return " (" + mention(pointer, value) + ")";
  }

  std::string mention(const std::string& pointer, const Json& value) const {
    return document_.mention(pointer, value);
  }

  /// `value` is the scenario's value at `pointer`, used if the file does not set it.
  [[noreturn]] void fail(const std::string& pointer, const Json& value, const std::string& expected,
                         const std::string& hint = {}) const {
    document_.fail(pointer, expected, hint, value);
  }

  const ScenarioDocument& document_;
  const Scenario& s_;
  const BackendDescriptor& backend_;
};

}  // namespace

void check_scenario(const ScenarioDocument& document, const Scenario& scenario) {
  Checks(document, scenario).run();
}

}  // namespace gradsync::scenario_table
