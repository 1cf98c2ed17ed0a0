#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "gradsync/comm/group_options.hpp"
#include "gradsync/core/units.hpp"
#include "gradsync/data/sampler_options.hpp"
#include "gradsync/ddp/ddp_options.hpp"
#include "gradsync/ddp/join_options.hpp"
#include "gradsync/ddp/power_sgd_options.hpp"
#include "gradsync/models/replay_options.hpp"
#include "gradsync/models/transformer_options.hpp"
#include "gradsync/optim/lr_schedule.hpp"
#include "gradsync/optim/optimizer_options.hpp"
#include "gradsync/testbed/scenario/fault_spec.hpp"
#include "gradsync/testbed/scenario/imperfection_spec.hpp"

namespace gradsync {

/// The scenario: everything that a run depends on, with every default filled in. Names and defaults
/// are those of the JSON file (docs/scenarios.md) and, where PyTorch has the option, PyTorch's.
///
/// Where the engine has options for something, they are the scenario's, and so are their defaults;
/// the other defaults stand here and nowhere else. The reader, the schema and the reference take
/// them from a default-constructed Scenario. The paths inside are absolute: what the file says is
/// relative to its own folder.

struct ReplaySpec : ReplayOptions {
  std::string profile;  ///< path of the profile
  /// True: gradients have bytes, also in the simulator (where they are meta tensors by default).
  bool payload = false;
  bool operator==(const ReplaySpec&) const = default;
};

struct ModelSpec {
  enum class Kind { kTransformer, kReplay };
  Kind kind = Kind::kTransformer;
  TransformerOptions transformer;
  ReplaySpec replay;
  bool operator==(const ModelSpec&) const = default;
};

struct DataSpec {
  enum class Kind { kSyntheticTokens, kText, kIndices };
  Kind kind = Kind::kSyntheticTokens;
  std::int64_t samples = 1024;  ///< kIndices has samples and nothing in them (replayed models)
  std::int64_t seq_len = 32;
  std::int64_t vocab_size = 1000;  ///< synthetic tokens are drawn below it; 256 for text
  std::uint64_t seed = 0;
  std::string path;  ///< kText: a UTF-8 file
  bool operator==(const DataSpec&) const = default;
};

struct SamplerSpec : SamplerOptions {
  SamplerSpec() { seed = 42; }  // PyTorch's default is 0
  bool set_epoch = true;        ///< false: the same order in every epoch
  bool operator==(const SamplerSpec&) const = default;
};

/// Parameters with settings of their own, as an entry of torch.optim's param_groups.
struct ParamGroupSpec {
  std::vector<std::string> params;  ///< patterns of names
  std::optional<double> lr;
  std::optional<double> weight_decay;
  bool operator==(const ParamGroupSpec&) const = default;
};

struct OptimizerSpec {
  std::variant<AdamWOptions, SgdOptions> options;
  LrSchedule lr_schedule;
  std::vector<ParamGroupSpec> param_groups;  ///< all other parameters are a group of their own
  bool operator==(const OptimizerSpec&) const = default;
};

struct TrainSpec {
  std::int64_t batch_size = 32;  ///< samples a rank and step
  std::int64_t epochs = 1;
  std::optional<std::int64_t> max_steps;  ///< ends the run early; counts over all epochs
  std::int64_t accumulate_steps = 1;      ///< batches an optimizer step (gradient accumulation)
  bool no_sync = true;                    ///< reduce only with the last batch of a step
  std::optional<double> clip_grad_norm = 1.0;
  double clip_norm_type = 2;  ///< p of the norm; may be infinity
  bool error_if_nonfinite = false;
  std::int64_t hash_every = 1;  ///< parameter hash every k steps; 0: only after the last
  bool check_hashes = false;    ///< compare the hash over all ranks whenever it is taken
  bool operator==(const TrainSpec&) const = default;
};

struct DdpSpec : DdpOptions {
  std::optional<std::string> comm_hook;
  PowerSgdOptions power_sgd;             ///< of the hooks "power_sgd" and "batched_power_sgd"
  JoinOptions join = {.enable = false};  ///< whether epochs run inside a join, and how
  bool operator==(const DdpSpec&) const = default;
};

struct LinkSpec {
  BytesPerSecond bandwidth;
  Seconds latency{0};
  bool operator==(const LinkSpec&) const = default;
};

/// What the simulator runs on. The defaults stand for a laptop: ranks are processes that talk over
/// TCP inside one machine, and compute on a core each.
struct ClusterSpec {
  enum class Library { kGloo, kNccl };
  enum class Generation { kVolta, kAmpere, kHopper, kBlackwell };
  enum class CpuVendor { kIntel, kAmd, kOther };
  enum class NodeTopology { kSwitch, kCubeMesh, kPcieTree };
  enum class Topology { kStar, kFatTree, kLeafSpine, kTorus, kDragonfly };

  /// What the software of a rank adds to what the wires take; calibration fits these.
  struct Software {
    Seconds per_operation{0};  ///< added to each collective, on each rank: launch, synchronization
    Seconds per_message{0};    ///< added to each message of each rank
    /// Bytes that the CPUs of one node send, receive and reduce in a second, shared by its ranks;
    /// unset: without limit.
    std::optional<BytesPerSecond> host_bandwidth;
    double hop_latency_scale = 1;  ///< multiplies NCCL's latencies of a hop (facts of its tuner)
    bool operator==(const Software&) const = default;
  };

  std::string name;  ///< of the description
  /// 0 stands for "as many as the ranks need"; a scenario that was read has the number.
  std::int64_t nodes = 0;
  std::int64_t gpus_per_node = 8;
  std::int64_t nics_per_node = 1;     ///< adapters, each with a cable of inter_node
  FlopsPerSecond compute_rate{50e9};  ///< of one GPU, for models that are computed
  Library library = Library::kGloo;   ///< whose algorithms and costs are simulated
  Generation generation = Generation::kAmpere;
  CpuVendor cpu_vendor = CpuVendor::kIntel;
  bool gpu_direct = true;  ///< adapters read GPU memory (GPUDirect RDMA): NCCL's LL128 needs it
  Software software;

  NodeTopology node_topology = NodeTopology::kSwitch;
  LinkSpec intra_node{{5e9}, Seconds{20e-6}};  ///< of each GPU; a cube mesh's: one NVLink
  std::int64_t pcie_gpus_per_switch = 2;       ///< that share a cable of intra_node to their socket
  LinkSpec pcie_socket{{10e9}, Seconds{0}};    ///< of each of two sockets to the other

  LinkSpec inter_node{{1.25e9}, Seconds{50e-6}};  ///< of each adapter, to the fabric
  Topology topology = Topology::kStar;
  std::vector<std::int64_t> fat_tree_down;   ///< children per switch, from the bottom
  std::vector<std::int64_t> fat_tree_up;     ///< parents per switch
  std::vector<std::int64_t> fat_tree_links;  ///< parallel cables
  std::int64_t leaf_nodes = 16;              ///< nodes under one leaf switch
  double leaf_oversubscription = 1;          ///< bandwidth down / bandwidth up of a leaf switch
  std::vector<std::int64_t> torus_dimensions;
  std::int64_t dragonfly_groups = 1;
  std::int64_t dragonfly_chassis = 1;  ///< of a group
  std::int64_t dragonfly_routers = 1;  ///< of a chassis
  std::int64_t dragonfly_nodes = 1;    ///< of a router
  /// A SimGrid platform (XML) in place of all of the above but the software; its hosts in the order
  /// of the file are the ranks. Empty: none.
  std::string platform_file;
  bool operator==(const ClusterSpec&) const = default;
};

/// Which way the simulated library takes; kAuto leaves it to the library's own choice.
struct CommunicationSpec {
  enum class Algorithm {
    kAuto,
    kRing,
    kTree,
    kNvls,
    kNvlsTree,
    kBcube,
    kHalvingDoubling,
    kHierarchical
  };
  enum class Protocol { kAuto, kLl, kLl128, kSimple };
  Algorithm algorithm = Algorithm::kAuto;
  Protocol protocol = Protocol::kAuto;
  bool operator==(const CommunicationSpec&) const = default;
};

enum class Fidelity { kAuto, kMessage, kFlow, kAnalytic };

/// The NCCL backend.
struct NcclSpec {
  std::vector<std::int64_t> device_ids;  ///< GPU of each local rank; empty: the local rank
  bool register_buffers = false;         ///< let NCCL use the buckets' memory directly
  bool operator==(const NcclSpec&) const = default;
};

struct GlooSpec {
  std::int64_t threads = 1;  ///< communication threads; 2 as in PyTorch's default
  std::string interface;     ///< network interface (GLOO_SOCKET_IFNAME); empty: by MASTER_ADDR
  bool operator==(const GlooSpec&) const = default;
};

struct ExpectSpec {
  std::optional<std::string> outcome;
  std::optional<std::int64_t> exit_status;
  std::optional<std::int64_t> steps_completed;
  std::optional<std::string> parameter_hash;
  std::optional<double> loss_last_min, loss_last_max;
  std::optional<double> loss_last_ratio_max;  ///< last loss / first loss
  bool equal_hashes_on_all_ranks = false;
  std::int64_t repeat = 1;  ///< runs whose hashes must be equal
  std::optional<std::string> diagnosis_verdict;
  std::optional<std::string> diagnosis_kind;
  std::optional<std::string> diagnosis_catalog;
  std::vector<std::int64_t> diagnosis_ranks;
  std::optional<std::int64_t> diagnosis_step;
  std::optional<std::string> diagnosis_collective;  ///< is in the diagnosis's
  bool operator==(const ExpectSpec&) const = default;
};

struct OutputSpec {
  std::int64_t detail_ranks = 64;  ///< ranks whose steps and events are written; summaries for all
  std::int64_t flight_recorder_size = FlightRecorder::kDefaultCapacity;
  bool operator==(const OutputSpec&) const = default;
};

struct Scenario {
  std::string name;
  std::string description;
  std::string file;  ///< where it was read from, as the user gave it
  std::string backend = "gloo";
  std::int64_t ranks = 2;
  std::uint64_t seed = 0;                    ///< initial weights
  Seconds timeout = GroupOptions().timeout;  ///< of each collective, and of the rendezvous
  bool detail = true;  ///< labels of collectives are compared before bytes move
  ModelSpec model;
  DataSpec data;
  SamplerSpec sampler;
  OptimizerSpec optimizer;
  TrainSpec train;
  DdpSpec ddp;
  ClusterSpec cluster;
  CommunicationSpec communication;
  Fidelity fidelity = Fidelity::kAuto;
  GlooSpec gloo;
  NcclSpec nccl;
  OutputSpec output;
  ExpectSpec expect;
  std::vector<FaultSpec> faults;
  ImperfectionSpec imperfections;
  bool operator==(const Scenario&) const = default;
};

/// An assignment from the command line: `--set train.batch_size=16`. The path is a JSON path with
/// dots; the value is JSON where it parses as JSON, else a string.
struct ScenarioOverride {
  std::string path;
  std::string value;
  /// How the user wrote it, for error messages, e.g. "--ranks 4"; empty: "--set PATH=VALUE".
  std::string option;
};

/// Reads a scenario file, applies the overrides, fills in defaults and checks everything that can
/// be checked without running. Throws ConfigError with file and JSON pointer for the first mistake.
Scenario load_scenario(const std::string& file,
                       const std::vector<ScenarioOverride>& overrides = {});

/// The same from JSON text; `name` stands for the file in errors and `base_dir` for its folder.
Scenario parse_scenario(const std::string& text, const std::string& name,
                        const std::string& base_dir,
                        const std::vector<ScenarioOverride>& overrides = {});

/// As resolved, every default filled in; load_scenario reads it back to an equal scenario.
nlohmann::ordered_json to_json(const Scenario& scenario);

/// The JSON Schema (draft-07) of the scenario file, from the same table as the loader.
nlohmann::ordered_json scenario_schema();

/// docs/scenarios.md, from the same table as the loader.
std::string scenario_reference_markdown();

}  // namespace gradsync
