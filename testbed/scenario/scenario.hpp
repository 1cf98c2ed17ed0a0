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
#include "gradsync/testbed/scenario/registry.hpp"

namespace gradsync {

/// The scenario: everything a run depends on, with all defaults filled in. Names and defaults are
/// those of the JSON file (docs/scenarios.md) and, for options that PyTorch has, PyTorch's.
///
/// Engine options are embedded with the engine's defaults; all other defaults are defined here and
/// nowhere else. The reader, the schema and the reference take them from a default-constructed
/// Scenario. Paths are absolute: paths in the file are relative to its folder.

struct ReplaySpec : ReplayOptions {
  std::string profile;  ///< path of the profile
  /// True: gradients have data, also in the simulator, which uses meta tensors by default.
  bool payload = false;
  bool operator==(const ReplaySpec&) const = default;
};

struct ModelSpec {
  enum class Kind { kTransformer, kReplay, kRegistered };
  Kind kind = Kind::kTransformer;
  TransformerOptions transformer;
  ReplaySpec replay;
  RegisteredSpec registered;
  bool operator==(const ModelSpec&) const = default;
};

struct DataSpec {
  enum class Kind { kSyntheticTokens, kText, kIndices, kRegistered };
  Kind kind = Kind::kSyntheticTokens;
  std::int64_t samples = 1024;  ///< kIndices has samples without content (replayed models)
  std::int64_t seq_len = 32;
  std::int64_t vocab_size = 1000;  ///< of the synthetic tokens; 256 for text
  std::uint64_t seed = 0;
  std::string path;  ///< kText: a UTF-8 file
  RegisteredSpec registered;
  /// Whether `samples` is the size of the data set; for the other kinds it is known when the data
  /// set has been made.
  bool has_known_size() const { return kind == Kind::kSyntheticTokens || kind == Kind::kIndices; }
  bool operator==(const DataSpec&) const = default;
};

struct SamplerSpec : SamplerOptions {
  SamplerSpec() { seed = 42; }  // PyTorch's default is 0
  bool set_epoch = true;        ///< false: the same order in every epoch
  bool operator==(const SamplerSpec&) const = default;
};

/// Parameters with their own settings, like an entry of torch.optim's param_groups.
struct ParamGroupSpec {
  std::vector<std::string> params;  ///< patterns of names
  std::optional<double> lr;
  std::optional<double> weight_decay;
  bool operator==(const ParamGroupSpec&) const = default;
};

struct OptimizerSpec {
  std::variant<AdamWOptions, SgdOptions> options;
  LrSchedule lr_schedule;
  std::vector<ParamGroupSpec> param_groups;  ///< the remaining parameters form their own group
  bool operator==(const OptimizerSpec&) const = default;
};

struct TrainSpec {
  std::int64_t batch_size = 32;  ///< samples per rank and step
  std::int64_t epochs = 1;
  std::optional<std::int64_t> max_steps;  ///< limits the run; counts over all epochs
  std::int64_t accumulate_steps = 1;      ///< batches per optimizer step (gradient accumulation)
  bool no_sync = true;                    ///< reduce only with the last batch of a step
  std::optional<double> clip_grad_norm = 1.0;
  double clip_norm_type = 2;  ///< p of the norm; may be infinity
  bool error_if_nonfinite = false;
  std::int64_t hash_every = 1;  ///< hash the parameters every k steps; 0: only after the last
  bool check_hashes = false;    ///< compare every hash across all ranks
  bool operator==(const TrainSpec&) const = default;
};

struct DdpSpec : DdpOptions {
  std::optional<std::string> comm_hook;
  PowerSgdOptions power_sgd;             ///< for the hooks "power_sgd" and "batched_power_sgd"
  JoinOptions join = {.enable = false};  ///< whether epochs run inside a join, and its options
  bool operator==(const DdpSpec&) const = default;
};

struct LinkSpec {
  BytesPerSecond bandwidth;
  Seconds latency{0};
  bool operator==(const LinkSpec&) const = default;
};

/// The simulated hardware. The defaults model a laptop: ranks are processes that communicate over
/// TCP within one machine and compute on one core each.
struct ClusterSpec {
  enum class Library { kGloo, kNccl };
  enum class Generation { kVolta, kAmpere, kHopper, kBlackwell };
  enum class CpuVendor { kIntel, kAmd, kOther };
  enum class NodeTopology { kSwitch, kCubeMesh, kPcieTree };
  enum class Topology { kStar, kFatTree, kLeafSpine, kTorus, kDragonfly };

  /// Software overhead of a rank on top of the wire time; fitted by calibration.
  struct Software {
    Seconds per_operation{0};  ///< per collective and rank: launch, synchronization
    Seconds per_message{0};    ///< per message and rank
    /// Bytes per second that the CPUs of one node can send, receive and reduce, shared by its
    /// ranks; unset: unlimited.
    std::optional<BytesPerSecond> host_bandwidth;
    double hop_latency_scale = 1;  ///< multiplies NCCL's per-hop latencies (from its tuner)
    bool operator==(const Software&) const = default;
  };

  std::string name;  ///< of the description
  /// 0 means as many as the ranks need; a loaded scenario has the number.
  std::int64_t nodes = 0;
  std::int64_t gpus_per_node = 8;
  std::int64_t nics_per_node = 1;     ///< adapters, each with a cable of inter_node
  FlopsPerSecond compute_rate{50e9};  ///< of one GPU, for computed models
  Library library = Library::kGloo;   ///< the library whose algorithms and costs are simulated
  Generation generation = Generation::kAmpere;
  CpuVendor cpu_vendor = CpuVendor::kIntel;
  bool gpu_direct = true;  ///< adapters read GPU memory (GPUDirect RDMA); needed by NCCL's LL128
  Software software;

  NodeTopology node_topology = NodeTopology::kSwitch;
  LinkSpec intra_node{{5e9}, Seconds{20e-6}};  ///< per GPU; for a cube mesh, per NVLink
  std::int64_t pcie_gpus_per_switch = 2;     ///< GPUs sharing one intra_node cable to their socket
  LinkSpec pcie_socket{{10e9}, Seconds{0}};  ///< from each of the two sockets to the other

  LinkSpec inter_node{{1.25e9}, Seconds{50e-6}};  ///< from each adapter to the fabric
  Topology topology = Topology::kStar;
  std::vector<std::int64_t> fat_tree_down;   ///< children per switch, from the bottom
  std::vector<std::int64_t> fat_tree_up;     ///< parents per switch
  std::vector<std::int64_t> fat_tree_links;  ///< parallel cables
  std::int64_t leaf_nodes = 16;              ///< nodes under one leaf switch
  double leaf_oversubscription = 1;  ///< downlink bandwidth / uplink bandwidth of a leaf switch
  std::vector<std::int64_t> torus_dimensions;
  std::int64_t dragonfly_groups = 1;
  std::int64_t dragonfly_chassis = 1;  ///< per group
  std::int64_t dragonfly_routers = 1;  ///< per chassis
  std::int64_t dragonfly_nodes = 1;    ///< per router
  /// A SimGrid platform (XML) that replaces all of the above except the software overheads. Its
  /// hosts, in file order, are the ranks. Empty: none.
  std::string platform_file;
  bool operator==(const ClusterSpec&) const = default;
};

/// The algorithm of the simulated library; kAuto uses the library's own choice.
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

/// Options of the NCCL backend.
struct NcclSpec {
  std::vector<std::int64_t> device_ids;  ///< GPU of each local rank; empty: the local rank
  bool register_buffers = false;         ///< let NCCL use the buckets' memory directly
  bool operator==(const NcclSpec&) const = default;
};

struct GlooSpec {
  std::int64_t threads = 1;  ///< communication threads; PyTorch's default is 2
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
  std::int64_t repeat = 1;  ///< number of runs, whose hashes must be equal
  std::optional<std::string> diagnosis_verdict;
  std::optional<std::string> diagnosis_kind;
  std::optional<std::string> diagnosis_catalog;
  std::vector<std::int64_t> diagnosis_ranks;
  std::optional<std::int64_t> diagnosis_step;
  std::optional<std::string> diagnosis_collective;  ///< substring of the diagnosis's collective
  bool operator==(const ExpectSpec&) const = default;
};

struct OutputSpec {
  std::int64_t detail_ranks = 64;  ///< ranks with steps and events; all ranks have summaries
  std::int64_t flight_recorder_size = FlightRecorder::kDefaultCapacity;
  bool operator==(const OutputSpec&) const = default;
};

struct Scenario {
  std::string name;
  std::string description;
  std::string file;  ///< source file, as given by the user
  std::string backend = "gloo";
  std::int64_t ranks = 2;
  std::uint64_t seed = 0;                    ///< initial weights
  Seconds timeout = GroupOptions().timeout;  ///< of each collective and of the rendezvous
  bool detail = true;  ///< compare the labels of collectives before data moves
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
/// dots; the value is JSON if it parses as JSON, otherwise a string.
struct ScenarioOverride {
  std::string path;
  std::string value;
  /// The option as typed by the user, for error messages, e.g. "--ranks 4"; empty: "--set
  /// PATH=VALUE".
  std::string option;
};

/// Reads a scenario file, applies the overrides, fills in defaults and checks everything that can
/// be checked without running. Throws ConfigError with file and JSON pointer for the first error.
Scenario load_scenario(const std::string& file,
                       const std::vector<ScenarioOverride>& overrides = {});

/// Same, from JSON text; `name` is the file name in errors and `base_dir` its folder.
Scenario parse_scenario(const std::string& text, const std::string& name,
                        const std::string& base_dir,
                        const std::vector<ScenarioOverride>& overrides = {});

/// The resolved scenario with all defaults; load_scenario reads it back to an equal scenario.
nlohmann::ordered_json to_json(const Scenario& scenario);

/// The JSON Schema (draft-07) of the scenario file, generated from the loader's table.
nlohmann::ordered_json scenario_schema();

/// docs/scenarios.md, generated from the loader's table.
std::string scenario_reference_markdown();

}  // namespace gradsync
