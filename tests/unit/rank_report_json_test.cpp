#include <cmath>
#include <limits>

#include <nlohmann/json.hpp>

#include "gradsync/testbed/record/rank_report_json.hpp"
#include "tests/support/catch.hpp"

namespace gradsync {
namespace {

using test::contains;
using Json = nlohmann::ordered_json;

using Names = std::shared_ptr<const std::vector<std::string>>;

CollectiveRecord completed_allreduce(Names names) {
  CollectiveRecord done;
  done.sequence = 4;
  done.group = "default_pg";
  done.op = OpType::kAllreduce;
  done.reduce_op = ReduceOp::kMax;
  done.root = 2;
  done.elements = 1567208;
  done.dtype = DType::kBFloat16;
  done.bytes = 3134416;
  done.label = {1, 7, 2, Phase::kBackward, 1, "gradients", "reducer.cpp:120"};
  done.parameters = std::move(names);
  done.state = CollectiveState::kCompleted;
  done.issued = Seconds{0.1};
  done.started = Seconds{1.0 / 3};
  done.completed = Seconds{0.7000000000000001};
  return done;
}

StepRecord full_step() {
  StepRecord step;
  step.epoch = 1;
  step.step = 7;
  step.loss = 0.1 + 0.2;
  step.grad_norm = std::numeric_limits<double>::infinity();
  step.learning_rate = 1e-3;
  step.parameter_hash = "ff";
  step.samples = 32;
  step.sample_hash = "ee";
  step.begin = Seconds{1};
  step.data_end = Seconds{2};
  step.forward_end = Seconds{3};
  step.backward_compute_end = Seconds{4};
  step.backward_end = Seconds{5};
  step.clip_end = Seconds{6};
  step.optimizer_end = Seconds{7};
  step.end = Seconds{8};
  step.comm_begin = Seconds{9};
  step.comm_end = Seconds{10};
  step.clip_coefficient = 0.25;
  step.loss_scale = 1024;
  step.unscales = 2;
  step.scale_at_clip = 512;
  step.clip_norm = 1.5;
  step.batches = 3;
  step.reductions = 2;
  step.last_batch_reduced = false;
  step.checksums = {0, 4294967295u};
  return step;
}

/// What is known of the job's DDP.
void fill_ddp(RankReport& report, const std::vector<std::string>& names) {
  report.parameter_tensors = 27;
  report.parameter_count = 1567208;
  report.parameter_bytes = 6268832;
  report.rebuilt_buckets = true;
  report.buckets = {{0, 100, 25, names}, {1, 4, 1, {"bias"}}};
  report.comm_hook = "fp16_compress";
  report.warnings = {"one", "two"};
  report.ddp_logging.strs_map["bucket_sizes"] = "100, 4";
  report.ddp_logging.ints_map["world_size"] = 2;
  report.final_parameter_hash = "0123456789abcdef0123456789abcdef";
}

/// A report in which every member differs from its default.
RankReport full_report() {
  const auto names = std::make_shared<const std::vector<std::string>>(
      std::vector<std::string>{"layers.0.weight", "größe \"x\"\n"});
  const CollectiveRecord done = completed_allreduce(names);
  CollectiveRecord pending = done;
  pending.sequence = 5;
  pending.state = CollectiveState::kFailed;
  pending.error = "timed out after 2 s";
  CollectiveRecord barrier;
  barrier.op = OpType::kBarrier;
  barrier.group = "default_pg";

  RankReport report;
  report.rank = 3;
  report.world_size = 4;
  report.state = RankState::kFailed;
  report.error_code = ErrorCode::kTimeout;
  report.error = "rank 3: ...";
  report.failed_collective = pending;
  report.exit_code = 4;
  report.exit_signal = 9;
  report.phase = Phase::kBackward;
  report.phase_since = Seconds{0.3};
  report.ended = Seconds{2.1};
  report.steps_completed = 2;
  report.steps_planned = 3;
  report.samples_planned = 10;
  report.dataset_samples = 40;
  fill_ddp(report, *names);
  report.batches_drawn = 6;
  report.first_step = 1;
  report.config_hash = "abc";
  report.device_claimed = 5;
  report.events = {{RankEventKind::kSkipped, Phase::kForward, 4, "out of memory"},
                   {RankEventKind::kLeftLoop, Phase::kCheck, 5, "early stop"},
                   {RankEventKind::kRaised, Phase::kForward, 6, "KeyError"}};
  report.phases = {{Phase::kCheckpoint, 3, Seconds{0.5}}};
  report.epochs = {{0, {5, 3, 9}, false}};
  report.tensors = {"parameter a float32 [2]", "buffer b int64 []"};
  report.buffer_count = 1;
  report.clean_up_since = Seconds{1.5};
  report.unreachable = {2, 3};
  report.world = {{"the cables of node 1 are down", Seconds{0.25}, Seconds{1.5}, false},
                  {"the cables of node 2 are slow", Seconds{0}, std::nullopt, true}};
  report.steps = {full_step(), StepRecord{}};
  report.collectives = {barrier, done};
  report.flight = {done, pending};
  report.peak_rss_bytes = 1 << 20;
  return report;
}

TEST_CASE("rank report: JSON text and back loses nothing") {
  const Json before = to_json(full_report());
  const std::string text = before.dump();
  const RankReport read = rank_report_from_text(text, "rank-3.json");
  CHECK(to_json(read).dump() == text);

  CHECK(read.steps[0].loss == 0.1 + 0.2);
  CHECK(read.steps[0].grad_norm == std::numeric_limits<double>::infinity());
  CHECK_FALSE(read.steps[1].loss.has_value());
  CHECK(read.collectives[1].started == Seconds{1.0 / 3});
  CHECK(read.collectives[1].label.phase == Phase::kBackward);
  CHECK(read.collectives[0].parameters == nullptr);
  CHECK(*read.flight[1].parameters == read.buckets[0].parameters);
  CHECK(read.failed_collective->error == "timed out after 2 s");
  CHECK(read.error_code == ErrorCode::kTimeout);
  CHECK(read.warnings == std::vector<std::string>{"one", "two"});
  CHECK(read.ddp_logging.strs_map == full_report().ddp_logging.strs_map);
  CHECK(read.ddp_logging.ints_map == full_report().ddp_logging.ints_map);
}

TEST_CASE("rank report: every key of the JSON is read back") {
  // A value that is changed in the JSON must show after a round trip: no key is written and
  // forgotten.
  const Json before = to_json(full_report());
  const auto changed_value = [](const std::string& key, const Json& value) {
    if (value.is_boolean()) return Json(!value.get<bool>());
    if (value.is_array()) return Json::array();
    if (value.is_number_integer()) return Json(77);
    return value.is_number_float() || key == "grad_norm" ? Json(77.5) : Json("changed");
  };
  for (const char* key : {"rank",
                          "world_size",
                          "error",
                          "exit_code",
                          "exit_signal",
                          "phase_since",
                          "ended",
                          "steps_completed",
                          "steps_planned",
                          "samples_planned",
                          "dataset_samples",
                          "parameter_tensors",
                          "parameter_count",
                          "parameter_bytes",
                          "comm_hook",
                          "batches_drawn",
                          "first_step",
                          "config_hash",
                          "device_claimed",
                          "events",
                          "phases",
                          "epochs",
                          "tensors",
                          "buffer_count",
                          "world",
                          "clean_up_since",
                          "unreachable",
                          "final_parameter_hash",
                          "peak_rss_bytes"}) {
    Json changed = before;
    changed[key] = changed_value(key, before[key]);
    CAPTURE(key);
    CHECK(to_json(rank_report_from_json(changed)).dump() == changed.dump());
  }
  for (const auto& [key, value] : before["steps"][0].items()) {
    Json changed = before;
    changed["steps"][0][key] = changed_value(key, value);
    CAPTURE(key);
    CHECK(to_json(rank_report_from_json(changed)).dump() == changed.dump());
  }
}

TEST_CASE("rank report: lists of parameter names stand once in the JSON and are shared when read") {
  const Json json = to_json(full_report());
  CHECK(json["parameter_lists"].size() == 2);
  const RankReport read = rank_report_from_json(json);
  CHECK(read.flight[0].parameters.get() == read.flight[1].parameters.get());
}

TEST_CASE("rank report: a loss that is not a number survives") {
  RankReport report;
  report.steps.resize(1);
  report.steps[0].loss = std::numeric_limits<double>::quiet_NaN();
  const RankReport read = rank_report_from_text(to_json(report).dump(), "x");
  REQUIRE(read.steps[0].loss.has_value());
  CHECK(std::isnan(*read.steps[0].loss));
}

TEST_CASE("rank report: a truncated file is an error that names it, at every length") {
  const std::string text = to_json(full_report()).dump();
  for (std::size_t length = 0; length < text.size(); length += 7) {
    CHECK_THROWS_WITH(rank_report_from_text(text.substr(0, length), "rank-3.json"),
                      contains("rank-3.json"));
  }
}

TEST_CASE("rank report: foreign JSON is an error that names the place") {
  CHECK_THROWS_WITH(rank_report_from_text("[]", "f"), contains("f: expected an object"));
  CHECK_THROWS_WITH(rank_report_from_text("{}", "f"), contains("f.report_version"));

  const Json good = to_json(full_report());
  const auto broken = [&](const char* pointer, const Json& value) {
    Json json = good;
    json[Json::json_pointer(pointer)] = value;
    return json;
  };
  CHECK_THROWS_WITH(rank_report_from_json(broken("/report_version", 1)),
                    contains("report.report_version: expected 3, found 1"));
  CHECK_THROWS_WITH(rank_report_from_json(broken("/rank", 1e40)), contains("report.rank"));
  CHECK_THROWS_WITH(rank_report_from_json(broken("/rank", 5000000000)), contains("report.rank"));
  CHECK_THROWS_WITH(rank_report_from_json(broken("/state", "asleep")),
                    contains("report.state: expected a word such as \"running\""));
  CHECK_THROWS_WITH(rank_report_from_json(broken("/steps/0/loss", "high")),
                    contains("report.steps[0].loss: expected a number"));
  CHECK_THROWS_WITH(rank_report_from_json(broken("/flight/1/dtype", "float7")),
                    contains("report.flight[1].dtype"));
  CHECK_THROWS_WITH(rank_report_from_json(broken("/flight/1/parameters", 9)),
                    contains("report.flight[1].parameters: expected a position below 2"));
  CHECK_THROWS_WITH(rank_report_from_json(broken("/parameter_lists/0", 3)),
                    contains("a list of names"));

  // Whatever single value is replaced by a value of another type, the answer is a report or an
  // Error.
  const Json flat = good.flatten();
  for (const auto& [pointer, value] : flat.items()) {
    for (const Json& other : {Json(nullptr), Json(-1), Json("x"), Json::array(), Json::object()}) {
      Json json = good;
      json[Json::json_pointer(pointer)] = other;
      try {
        rank_report_from_json(json);
      } catch (const Error&) {
      }
    }
  }
}

}  // namespace
}  // namespace gradsync
