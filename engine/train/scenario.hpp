#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "engine/core/units.hpp"
#include "engine/tensor/dtype.hpp"

namespace gradsync {

/// The scenario: everything that a run depends on, with every default filled in. Names and defaults
/// are those of the JSON file (docs/scenarios.md) and, where PyTorch has the option, PyTorch's.

struct TransformerSpec {
  std::int64_t vocab_size = 1000;
  std::int64_t d_model = 256;
  std::int64_t nhead = 4;
  std::int64_t num_layers = 2;
  std::int64_t dim_feedforward = 512;
  bool norm_first = false;
};

struct ReplaySpec {
  std::string profile;  ///< path of the profile, relative to the scenario file
  double compute_scale = 1.0;  ///< multiplies every time of the profile
  /// True: gradients have bytes, also in the simulator (where they are meta tensors by default).
  bool payload = false;
};

struct ModelSpec {
  enum class Kind { kTransformer, kReplay };
  Kind kind = Kind::kTransformer;
  TransformerSpec transformer;
  ReplaySpec replay;
};

struct DataSpec {
  enum class Kind { kSyntheticTokens, kText, kIndices };
  Kind kind = Kind::kSyntheticTokens;
  std::int64_t samples = 1024;  ///< kIndices has samples and nothing in them (replayed models)
  std::int64_t seq_len = 32;
  std::int64_t vocab_size = 1000;  ///< synthetic tokens are drawn below it; 256 for text
  std::uint64_t seed = 0;
  std::string path;  ///< kText: a UTF-8 file, relative to the scenario file
};

struct SamplerSpec {
  bool shuffle = true;
  std::uint64_t seed = 42;
  bool drop_last = false;
  bool pad = true;       ///< false: the tail is dealt out unevenly, as hand-written samplers do
  bool set_epoch = true; ///< false: the same order in every epoch
  std::vector<std::int64_t> shard_sizes;  ///< samples of each rank; empty: dealt by the rule
};

struct OptimizerSpec {
  enum class Kind { kAdamW, kSgd };
  Kind kind = Kind::kAdamW;
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 1e-2;
  bool amsgrad = false;
  bool maximize = false;
  double momentum = 0;
  double dampening = 0;
  bool nesterov = false;
};

struct TrainSpec {
  std::int64_t batch_size = 32;  ///< samples a rank and step
  std::int64_t epochs = 1;
  std::optional<std::int64_t> max_steps;  ///< ends the run early; counts over all epochs
  std::optional<double> clip_grad_norm = 1.0;
  std::int64_t hash_every = 1;   ///< parameter hash every k steps; 0: only after the last
  bool check_hashes = false;     ///< compare the hash over all ranks whenever it is taken
};

struct DdpSpec {
  std::optional<double> bucket_cap_mb;  ///< MiB; unset: PyTorch's None (25 MiB, first bucket 1 MiB)
  bool gradient_as_bucket_view = false;
};

struct LinkSpec {
  BytesPerSecond bandwidth;
  Seconds latency{0};
};

struct ClusterSpec {
  enum class Topology { kStar, kFatTree };
  std::int64_t nodes = 1;
  std::int64_t gpus_per_node = 8;
  LinkSpec intra_node;  ///< of each GPU, to its node's switch
  LinkSpec inter_node;  ///< of each node, to the fabric
  Topology topology = Topology::kStar;
  std::vector<std::int64_t> fat_tree_down;   ///< children per switch, from the bottom
  std::vector<std::int64_t> fat_tree_up;     ///< parents per switch
  std::vector<std::int64_t> fat_tree_links;  ///< parallel cables
  FlopsPerSecond compute_rate;  ///< of one GPU, for models that are computed
};

enum class Fidelity { kAuto, kMessage, kFlow };

struct GlooSpec {
  std::int64_t threads = 1;  ///< communication threads; 2 as in PyTorch's default
  std::string interface;     ///< network interface (GLOO_SOCKET_IFNAME); empty: by MASTER_ADDR
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
  std::optional<std::string> diagnosis_kind;
  std::vector<std::int64_t> diagnosis_ranks;
};

struct OutputSpec {
  std::int64_t detail_ranks = 64;  ///< ranks whose steps and events are written; summaries for all
  std::int64_t flight_recorder_size = 2000;
};

struct Scenario {
  std::string name;
  std::string description;
  std::string file;  ///< where it was read from; paths inside are relative to its folder
  std::string backend = "gloo";
  std::int64_t ranks = 2;
  std::uint64_t seed = 0;  ///< initial weights
  Seconds timeout{30};     ///< of each collective, and of the rendezvous
  ModelSpec model;
  DataSpec data;
  SamplerSpec sampler;
  OptimizerSpec optimizer;
  TrainSpec train;
  DdpSpec ddp;
  ClusterSpec cluster;
  Fidelity fidelity = Fidelity::kAuto;
  GlooSpec gloo;
  OutputSpec output;
  ExpectSpec expect;
};

/// An assignment from the command line: `--set train.batch_size=16`. The path is a JSON path with
/// dots; the value is JSON where it parses as JSON, else a string.
struct ScenarioOverride {
  std::string path;
  std::string value;
};

/// Reads a scenario file, applies the overrides, fills in defaults and checks everything that can be
/// checked without running. Throws ConfigError with file and JSON pointer for the first mistake.
Scenario load_scenario(const std::string& file, const std::vector<ScenarioOverride>& overrides = {});

/// The same from JSON text; `name` stands for the file in errors and `base_dir` for its folder.
Scenario parse_scenario(const std::string& text, const std::string& name,
                        const std::string& base_dir,
                        const std::vector<ScenarioOverride>& overrides = {});

/// As resolved, every default filled in; load_scenario reads it back to an equal scenario.
nlohmann::ordered_json to_json(const Scenario& scenario);

/// The JSON Schema (draft-07) of the scenario file, from the same table as the loader.
nlohmann::ordered_json scenario_schema();

}  // namespace gradsync
