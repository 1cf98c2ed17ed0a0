#include "gradsync/testbed/scenario/scenario.hpp"

#include <filesystem>
#include <limits>

#include <nlohmann/json.hpp>

#include "gradsync/core/error.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/scenario_text.hpp"
#include "tests/support/temporary_directory.hpp"

using namespace gradsync;
using gradsync::test::contains;
using gradsync::test::mistake_in;
using gradsync::test::parse_test_scenario;
using gradsync::test::write_text;

TEST_CASE("scenario: a cluster in a file of its own") {
  const test::TemporaryDirectory folder;
  std::filesystem::create_directory(folder.path() / "clusters");
  write_text(folder.path() / "clusters/fast.json",
             R"({"$schema": "x", "//": "a source", "gpus_per_node": 4, "library": "nccl"})");
  write_text(folder.path() / "clusters/slow.json", R"({"gpus_per_node": 2})");
  write_text(folder.path() / "clusters/wrong.json", R"({"inter_node": {"latency": 5}})");
  write_text(folder.path() / "clusters/list.json", "[]");
  const auto load = [&](const std::string& cluster, std::vector<ScenarioOverride> overrides = {}) {
    return parse_scenario(R"({"ranks": 8, "backend": "sim", "cluster": ")" + cluster + "\"}",
                          "s.json", folder.path().string(), overrides);
  };
  const auto mistake = [&](const std::string& cluster,
                           const std::vector<ScenarioOverride>& overrides = {}) {
    try {
      load(cluster, overrides);
    } catch (const ConfigError& error) {
      return error.details();
    }
    FAIL("accepted");
    return ConfigError::Details{};
  };
  const Scenario s = load("clusters/fast.json");
  CHECK(s.cluster.gpus_per_node == 4);
  CHECK(s.cluster.nodes == 2);
  CHECK(s.cluster.library == ClusterSpec::Library::kNccl);
  CHECK(parse_scenario(to_json(s).dump(), "s.json", "") == s);

  SECTION("overrides change a value in it, or take another file") {
    CHECK(load("clusters/fast.json", {{"cluster.gpus_per_node", "1", ""}}).cluster.nodes == 8);
    CHECK(load("clusters/fast.json", {{"cluster", "clusters/slow.json", ""}}).cluster.nodes == 4);
  }
  SECTION("mistakes in it name that file and the pointer in it") {
    ConfigError::Details d = mistake("clusters/wrong.json");
    CHECK_THAT(d.file, contains("wrong.json"));
    CHECK(d.pointer == "/inter_node/latency");
    CHECK_THAT(mistake("clusters/list.json").file, contains("list.json"));
    d = mistake("clusters/fast.json", {{"cluster.gpus_per_node", "0", ""}});
    CHECK(d.file == "--set cluster.gpus_per_node=0");
    CHECK(d.pointer == "/cluster/gpus_per_node");
    d = mistake("clusters/fats.json");
    CHECK(d.file == "s.json");
    CHECK(d.pointer == "/cluster");
    CHECK_THAT(d.hint, contains("fast.json"));
  }
}

TEST_CASE("scenario: an empty object is the handbook's job") {
  const Scenario s = parse_test_scenario("{}");
  CHECK(s.name == "test");
  CHECK(s.file == "test.json");
  CHECK(s.backend == "gloo");
  CHECK(s.ranks == 2);
  CHECK(s.timeout == Seconds{30});
  CHECK(s.model.kind == ModelSpec::Kind::kTransformer);
  CHECK(s.model.transformer.d_model == 256);
  CHECK(s.data.kind == DataSpec::Kind::kSyntheticTokens);
  CHECK(s.data.samples == 1024);
  CHECK(s.data.seq_len == 32);
  CHECK(s.data.vocab_size == 1000);
  CHECK(s.sampler.seed == 42);
  CHECK(std::get<AdamWOptions>(s.optimizer.options).lr == 1e-3);
  CHECK(std::get<AdamWOptions>(s.optimizer.options).weight_decay == 1e-2);
  CHECK(s.train.batch_size == 32);
  CHECK(s.train.clip_grad_norm == 1.0);
  CHECK_FALSE(s.train.max_steps.has_value());
  CHECK_FALSE(s.ddp.bucket_cap_mb.has_value());
  CHECK(s.expect == ExpectSpec{});
}

TEST_CASE("scenario: every key reaches its member") {
  const std::string text = R"({
    "name": "n", "description": "d", "backend": "sim", "ranks": 6, "seed": 18446744073709551615,
    "timeout": "2min", "detail": false,
    "model": {"kind": "transformer", "vocab_size": 300, "d_model": 24, "nhead": 3, "num_layers": 5,
              "dim_feedforward": 7, "norm_first": true, "norm": "batch_norm",
              "dtype": "bfloat16"},
    "data": {"kind": "synthetic_tokens", "samples": 60, "seq_len": 9, "vocab_size": 200, "seed": 3},
    "sampler": {"shuffle": false, "seed": 4, "drop_last": false, "pad": false, "set_epoch": false,
                "shard_sizes": [10, 10, 10, 10, 10, 5]},
    "optimizer": {"kind": "adamw", "lr": 0.5, "betas": [0.25, 0.75], "eps": 0.125,
                  "weight_decay": 0.0625, "amsgrad": true, "maximize": true,
                  "lr_schedule": {"kind": "cosine", "total_steps": 20, "min_lr": 0.125,
                                  "warmup_steps": 21, "warmup_start_factor": 0.25},
                  "param_groups": [{"params": ["*.bias"], "weight_decay": 0},
                                   {"params": ["head.*", "x"], "lr": 0.75}]},
    "train": {"batch_size": 11, "epochs": 12, "max_steps": 13, "accumulate_steps": 2,
              "no_sync": false, "clip_grad_norm": 14.5, "clip_norm_type": "inf",
              "error_if_nonfinite": true, "hash_every": 15, "check_hashes": true},
    "ddp": {"bucket_cap_mb": 1.5, "first_bucket_cap_mb": 0.75, "gradient_as_bucket_view": true, "find_unused_parameters": true,
            "static_graph": true, "broadcast_buffers": false, "pytorch_version": "1.13",
            "params_and_buffers_to_ignore": ["a", "b"], "gradient_mean": "predivide",
            "comm_hook": "power_sgd",
            "power_sgd": {"matrix_approximation_rank": 4, "start_powerSGD_iter": 5,
                          "use_error_feedback": false, "warm_start": false},
            "join": {"enable": false, "divide_by_initial_world_size": false,
                     "throw_on_early_termination": true}},
    "cluster": {"name": "c", "nodes": 3, "gpus_per_node": 2, "nics_per_node": 2,
                "compute_rate": "2Tf", "library": "nccl", "generation": "hopper",
                "cpu_vendor": "amd", "gpu_direct": false, "node_topology": "pcie_tree",
                "topology": "fat_tree", "platform_file": "invalid.json",
                "intra_node": {"bandwidth": "300GBps", "latency": "3us"},
                "pcie_tree": {"gpus_per_switch": 4,
                              "socket": {"bandwidth": "11GBps", "latency": "2us"}},
                "inter_node": {"bandwidth": "200Gbps", "latency": "5us"},
                "leaf_spine": {"nodes_per_leaf": 3, "oversubscription": 1.5},
                "fat_tree": {"down": [2, 2], "up": [1, 2], "links": [1, 3]},
                "torus": {"dimensions": [2, 3]},
                "dragonfly": {"groups": 2, "chassis": 3, "routers": 4, "nodes": 5},
                "software": {"per_operation": "17us", "per_message": "6us",
                             "host_bandwidth": "7GBps", "hop_latency_scale": 2.5}},
    "communication": {"algorithm": "tree", "protocol": "ll128"},
    "simulation": {"fidelity": "flow"},
    "gloo": {"threads": 2, "interface": "lo"},
    "nccl": {"device_ids": [3, 1], "register_buffers": true},
    "output": {"detail_ranks": 16, "flight_recorder_size": 17},
    "expect": {"outcome": "hang", "exit_status": 4, "steps_completed": 18,
               "parameter_hash": "0123456789abcdef0123456789abcdef",
               "equal_hashes_on_all_ranks": true, "repeat": 19,
               "loss": {"last_min": 0.5, "last_max": 1.5, "last_ratio_max": 0.75},
               "diagnosis": {"verdict": "deadlock", "kind": "uneven_shards", "catalog": "K01",
                             "ranks": [5], "step": 20, "collective": "bucket 0"}},
    "faults": [{"kind": "skip", "ranks": [1], "step": 2, "steps": 3, "at": "forward",
                "message": "why"}],
    "imperfections": {
      "seed": 21,
      "compute": {"spread": 0.125, "jitter": 0.25, "distribution": "normal",
                  "while_communicating": 1.5},
      "slow_ranks": [{"ranks": [1], "factor": 2}],
      "late_ranks": [{"ranks": [2], "duration": "3s"}],
      "loader_stalls": [{"ranks": [3], "every": 4, "probability": 0.5, "duration": "5s"}],
      "links": [{"link": "nic-0-0", "factor": 0.5, "latency": "6s", "down": "7s", "period": "8s"},
                {"node": 1}],
      "traffic": [{"flows": 9, "from": 1, "to": 2, "rate": "10Bps", "on": "11s", "period": "12s"}]}
  })";
  const Scenario s = parse_test_scenario(text);
  // The text leaves no key out: none is added when the scenario is written.
  const auto keys = [](const auto& self, const nlohmann::json& object) -> std::size_t {
    std::size_t count = object.size();
    for (const auto& value : object) {
      if (value.is_object()) count += self(self, value);
    }
    return count;
  };
  CHECK(keys(keys, nlohmann::json::parse(to_json(s).dump())) ==
        keys(keys, nlohmann::json::parse(text)));

  Scenario expected;
  expected.name = "n";
  expected.description = "d";
  expected.file = "test.json";
  expected.backend = "sim";
  expected.ranks = 6;
  expected.seed = 18446744073709551615u;
  expected.timeout = Seconds{120};
  expected.model.transformer = {300, 24, 3, 5, 7, true, BlockNorm::kBatchNorm, DType::kBFloat16};
  expected.data = {DataSpec::Kind::kSyntheticTokens, 60, 9, 200, 3, "", {}};
  expected.sampler.shuffle = false;
  expected.sampler.seed = 4;
  expected.sampler.pad = false;
  expected.sampler.set_epoch = false;
  expected.sampler.shard_sizes = {10, 10, 10, 10, 10, 5};
  expected.optimizer.options = AdamWOptions{.lr = 0.5,
                                            .beta1 = 0.25,
                                            .beta2 = 0.75,
                                            .eps = 0.125,
                                            .weight_decay = 0.0625,
                                            .amsgrad = true,
                                            .maximize = true};
  expected.optimizer.param_groups = {{{"*.bias"}, std::nullopt, 0.0},
                                     {{"head.*", "x"}, 0.75, std::nullopt}};
  expected.optimizer.lr_schedule = {LrSchedule::Kind::kCosine, 1, 0.1, 20, 0.125, 21, 0.25};
  expected.train.batch_size = 11;
  expected.train.epochs = 12;
  expected.train.max_steps = 13;
  expected.train.accumulate_steps = 2;
  expected.train.no_sync = false;
  expected.train.clip_grad_norm = 14.5;
  expected.train.clip_norm_type = std::numeric_limits<double>::infinity();
  expected.train.error_if_nonfinite = true;
  expected.train.hash_every = 15;
  expected.train.check_hashes = true;
  expected.ddp.bucket_cap_mb = 1.5;
  expected.ddp.first_bucket_cap_mb = 0.75;
  expected.ddp.gradient_as_bucket_view = true;
  expected.ddp.find_unused_parameters = true;
  expected.ddp.static_graph = true;
  expected.ddp.broadcast_buffers = false;
  expected.ddp.pytorch_version = {1, 13};
  expected.ddp.params_and_buffers_to_ignore = {"a", "b"};
  expected.ddp.comm_hook = "power_sgd";
  expected.ddp.power_sgd = {.matrix_approximation_rank = 4,
                            .start_powerSGD_iter = 5,
                            .use_error_feedback = false,
                            .warm_start = false};
  expected.ddp.join = {
      .divide_by_initial_world_size = false, .enable = false, .throw_on_early_termination = true};
  expected.cluster.nodes = 3;
  expected.cluster.gpus_per_node = 2;
  expected.cluster.compute_rate = {2e12};
  expected.cluster.topology = ClusterSpec::Topology::kFatTree;
  expected.cluster.intra_node = {{300e9}, Seconds{3e-6}};
  expected.cluster.inter_node = {{25e9}, Seconds{5e-6}};
  expected.cluster.name = "c";
  expected.cluster.nics_per_node = 2;
  expected.cluster.library = ClusterSpec::Library::kNccl;
  expected.cluster.generation = ClusterSpec::Generation::kHopper;
  expected.cluster.cpu_vendor = ClusterSpec::CpuVendor::kAmd;
  expected.cluster.gpu_direct = false;
  expected.cluster.node_topology = ClusterSpec::NodeTopology::kPcieTree;
  expected.cluster.pcie_gpus_per_switch = 4;
  expected.cluster.pcie_socket = {{11e9}, Seconds{2e-6}};
  expected.cluster.leaf_nodes = 3;
  expected.cluster.leaf_oversubscription = 1.5;
  expected.cluster.torus_dimensions = {2, 3};
  expected.cluster.dragonfly_groups = 2;
  expected.cluster.dragonfly_chassis = 3;
  expected.cluster.dragonfly_routers = 4;
  expected.cluster.dragonfly_nodes = 5;
  expected.cluster.software = {Seconds{17e-6}, Seconds{6e-6}, BytesPerSecond{7e9}, 2.5};
  expected.cluster.platform_file =
      std::filesystem::absolute(std::filesystem::path(gradsync::test::test_data()) / "invalid.json")
          .lexically_normal()
          .string();
  expected.communication = {CommunicationSpec::Algorithm::kTree,
                            CommunicationSpec::Protocol::kLl128};
  expected.cluster.fat_tree_down = {2, 2};
  expected.cluster.fat_tree_up = {1, 2};
  expected.cluster.fat_tree_links = {1, 3};
  expected.fidelity = Fidelity::kFlow;
  expected.gloo.threads = 2;
  expected.gloo.interface = "lo";
  expected.nccl = {{3, 1}, true};
  expected.output.detail_ranks = 16;
  expected.output.flight_recorder_size = 17;
  expected.expect.outcome = "hang";
  expected.expect.exit_status = 4;
  expected.expect.steps_completed = 18;
  expected.expect.parameter_hash = "0123456789abcdef0123456789abcdef";
  expected.expect.equal_hashes_on_all_ranks = true;
  expected.expect.repeat = 19;
  expected.expect.loss_last_min = 0.5;
  expected.expect.loss_last_max = 1.5;
  expected.expect.loss_last_ratio_max = 0.75;
  expected.expect.diagnosis_verdict = "deadlock";
  expected.expect.diagnosis_kind = "uneven_shards";
  expected.expect.diagnosis_catalog = "K01";
  expected.expect.diagnosis_ranks = {5};
  expected.expect.diagnosis_step = 20;
  expected.expect.diagnosis_collective = "bucket 0";
  expected.detail = false;
  expected.faults = {
      {.ranks = {1},
       .kind = SkipFault{.step = 2, .steps = 3, .at = FaultPoint::kForward, .message = "why"}}};
  ImperfectionSpec& imperfections = expected.imperfections;
  imperfections.seed = 21;
  imperfections.compute_spread = 0.125;
  imperfections.compute_jitter = 0.25;
  imperfections.distribution = ImperfectionSpec::Distribution::kNormal;
  imperfections.while_communicating = 1.5;
  imperfections.slow_ranks = {{{1}, 2}};
  imperfections.late_ranks = {{{2}, Seconds{3}}};
  imperfections.loader_stalls = {{{3}, 4, 0.5, Seconds{5}}};
  imperfections.links = {{"nic-0-0", std::nullopt, 0.5, Seconds{6}, Seconds{7}, Seconds{8}},
                         {.link = {}, .node = 1}};
  imperfections.traffic = {{9, 1, 2, BytesPerSecond{10}, Seconds{11}, Seconds{12}}};
  CHECK(s == expected);

  // What is written reads back to the same.
  CHECK(parse_test_scenario(to_json(s).dump()) == s);
}

TEST_CASE("scenario: each kind has its own keys and defaults") {
  const Scenario sgd =
      parse_test_scenario(R"({"optimizer": {"momentum": 0.9, "dampening": 0.5, "kind": "sgd"}})");
  CHECK(std::get<SgdOptions>(sgd.optimizer.options) ==
        SgdOptions{.momentum = 0.9, .dampening = 0.5});
  CHECK(to_json(sgd).at("optimizer").contains("nesterov"));
  CHECK_FALSE(to_json(sgd).at("optimizer").contains("betas"));

  const Scenario text =
      parse_test_scenario(R"({"data": {"kind": "text", "path": "invalid.json"}})");
  CHECK(text.data.vocab_size == 256);
  CHECK_FALSE(to_json(text).at("data").contains("samples"));

  const Scenario replay = parse_test_scenario(R"({
    "model": {"kind": "replay", "profile": "invalid.json", "payload": true, "compute_scale": 2},
    "data": {"kind": "indices", "samples": 4}})");
  CHECK(replay.model.replay.payload);
  CHECK(replay.model.replay.compute_scale == 2);
  CHECK(replay.data.samples == 4);
  for (const Scenario& s : {sgd, text, replay}) CHECK(parse_test_scenario(to_json(s).dump()) == s);
}

TEST_CASE("scenario: null turns off what is on by default, and is written") {
  const Scenario s =
      parse_test_scenario(R"({"train": {"clip_grad_norm": null, "max_steps": null}})");
  CHECK_FALSE(s.train.clip_grad_norm.has_value());
  const auto train = to_json(s).at("train");
  CHECK(train.at("clip_grad_norm").is_null());
  CHECK_FALSE(train.contains("max_steps"));
  CHECK(parse_test_scenario(to_json(s).dump()) == s);
}

TEST_CASE("scenario: comments and the editor's schema are no keys") {
  const Scenario s = parse_test_scenario(R"({
    "$schema": "./schema/scenario.schema.json",
    "//": "two ranks", "// more": [1, {"a": 2}],
    "ranks": 3, "train": {"//": "small", "batch_size": 1}})");
  CHECK(s.ranks == 3);
  CHECK(s.train.batch_size == 1);
  CHECK(mistake_in(R"({"train": {"$schema": "x"}})").pointer == "/train/$schema");
}

TEST_CASE("scenario: numbers that are whole may be written with a point or an exponent") {
  const Scenario s =
      parse_test_scenario(R"({"ranks": 4.0, "train": {"max_steps": 1e3}, "seed": 2.0})");
  CHECK(s.ranks == 4);
  CHECK(s.train.max_steps == 1000);
  CHECK(s.seed == 2);
}

TEST_CASE("scenario: without a number of nodes there are as many as the ranks need") {
  CHECK(parse_test_scenario("{}").cluster.nodes == 1);
  CHECK(parse_test_scenario(R"({"ranks": 8})").cluster.nodes == 1);
  CHECK(parse_test_scenario(R"({"ranks": 9})").cluster.nodes == 2);
  CHECK(parse_test_scenario(R"({"ranks": 9, "cluster": {"gpus_per_node": 1}})").cluster.nodes == 9);
  // A real backend does not look at the cluster: it may be too small there.
  const std::string small = R"("ranks": 9, "cluster": {"nodes": 1})";
  CHECK_NOTHROW(parse_test_scenario("{" + small + "}"));
  CHECK(mistake_in(R"({"backend": "sim", )" + small + "}").pointer == "/cluster/nodes");
}

TEST_CASE("scenario: an average by the collective is refused where there is none") {
  const std::string average = R"("ddp": {"gradient_mean": "average")";
  const auto pointer = [&](const std::string& text) { return mistake_in(text).pointer; };
  CHECK(pointer("{" + average + "}}") == "/ddp/gradient_mean");
  CHECK(pointer(R"({"backend": "sim", )" + average + "}}") == "/ddp/gradient_mean");
  const std::string nccl = R"("backend": "sim", "cluster": {"library": "nccl"})";
  CHECK(parse_test_scenario("{" + nccl + ", " + average + "}}").ddp.gradient_mean ==
        GradientMean::kAverage);
  const Scenario real = parse_test_scenario(R"({"backend": "nccl", )" + average + "}}");
  CHECK(real.ddp.gradient_mean == GradientMean::kAverage);
  CHECK(parse_test_scenario(to_json(real).dump()) == real);
  const std::string on_nccl = R"({"backend": "nccl", )" + average;
  CHECK(pointer(on_nccl + R"(, "comm_hook": "fp16_compress"}})") == "/ddp/gradient_mean");
  CHECK(pointer(on_nccl + R"(, "join": {"enable": true,
                "divide_by_initial_world_size": false}}})") == "/ddp/gradient_mean");
  CHECK(parse_test_scenario("{}").ddp.gradient_mean == GradientMean::kPredivide);
}
