// Models and data sets that a program registers. Here and not beside the tests of the scenario,
// because what is registered stays registered: the schema of this process has more kinds than the
// one that ships.
#include "gradsync/testbed/scenario/registry.hpp"

#include <thread>

#include <nlohmann/json.hpp>

#include "gradsync/autograd/ops.hpp"
#include "gradsync/core/error.hpp"
#include "gradsync/data/dataset.hpp"
#include "gradsync/models/layers.hpp"
#include "gradsync/models/model.hpp"
#include "gradsync/testbed/rank/factories.hpp"
#include "gradsync/testbed/scenario/scenario.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/train_ranks.hpp"

using namespace gradsync;
using gradsync::test::contains;
using Json = nlohmann::ordered_json;

namespace {

/// One linear layer over the "features".
class OneLayer final : public Model {
 public:
  explicit OneLayer(const ModelRequest& request)
      : factory_(request.seed, request.device),
        layer_(factory_, "layer", 3, request.options.integer("width")) {}
  const std::vector<ParameterPtr>& parameters() const override { return factory_.parameters(); }
  const std::vector<BufferPtr>& buffers() const override { return factory_.buffers(); }
  std::vector<Variable> forward(const Batch& batch, Graph& graph) override {
    const Variable rows = layer_.forward(graph, {batch.tensors.at("features"), nullptr});
    return {ops::cross_entropy(graph, rows, batch.tensors.at("classes"))};
  }

 private:
  ParameterFactory factory_;
  Linear layer_;
};

/// As `main` of a program does; once per process.
void register_kinds() {
  static const bool once = [] {
    register_model("layer",
                   [](const ModelRequest& request) { return std::make_unique<OneLayer>(request); },
                   {.summary = "One layer.", .options = R"({"width": 4, "scale": 0.5, "deep": false,
                                                "name": "", "sizes": [], "any": null})"});
    register_model("null", [](const ModelRequest&) { return nullptr; }, {.summary = "Nothing."});
    register_dataset("rows",
                     [](const KindOptions& options) {
                       const std::int64_t rows = options.integer("rows");
                       return make_tensor_dataset(
                           {{"features", Tensor::zeros({rows, 3}, DType::kFloat32, cpu_device())},
                            {"classes", Tensor::zeros({rows}, DType::kInt64, cpu_device())}});
                     },
                     {.summary = "Zeros."});
    return true;
  }();
  REQUIRE(once);
}

Scenario parse(const std::string& text, const std::vector<ScenarioOverride>& overrides = {}) {
  register_kinds();
  return parse_scenario(text, "test.json", "", overrides);
}

constexpr const char* kOwn =
    R"({"ranks": 2, "model": {"kind": "layer", "options": {"//": "a comment", "width": 2}},
        "data": {"kind": "rows", "options": {"rows": 12}}, "train": {"batch_size": 3}})";

std::string model(const std::string& options) {
  return R"({"model": {"kind": "layer", "options": )" + options + "}}";
}

}  // namespace

TEST_CASE("a scenario names a registered model and data set") {
  const Scenario scenario = parse(kOwn);
  const Json json = to_json(scenario);
  CHECK(json.at("model") == Json::parse(R"({"kind": "layer", "options": {"width": 2, "scale": 0.5,
                                "deep": false, "name": "", "sizes": [], "any": null}})"));
  CHECK(json.at("data") == Json::parse(R"({"kind": "rows", "options": {"rows": 12}})"));
  CHECK(parse(json.dump()).model == scenario.model);
  CHECK(parse(json.dump()).data == scenario.data);

  const auto inputs = load_inputs(scenario);
  CHECK(inputs->dataset->size() == 12);
  const auto made = make_model(scenario, *inputs, 0, 2, cpu_device());
  CHECK(made->parameters().front()->data.shape() == Shape{2, 3});
  // Options are part of what decides whether ranks do the same.
  CHECK(load_inputs(parse(kOwn, {{"model.options.scale", "2", ""}}))->config_hash !=
        inputs->config_hash);
}

TEST_CASE("an override sets an option of a registered kind") {
  const Scenario scenario = parse(kOwn, {{"model.options.width", "7", "--set"}});
  CHECK(to_json(scenario).at("model").at("options").at("width") == 7);
}

TEST_CASE("a registered model trains like the others") {
  const auto reports = test::train_ranks(parse(kOwn));
  REQUIRE(reports.size() == 2);
  for (const RankReport& report : reports) {
    CHECK(report.error == "");
    CHECK(report.steps_completed == 2);
    CHECK(report.dataset_samples == 12);
    REQUIRE(report.final_parameter_hash);
    CHECK(report.final_parameter_hash == reports.front().final_parameter_hash);
  }
}

TEST_CASE("an error in a registered kind or its options has its place and a hint") {
  CHECK_THROWS_WITH(parse(R"({"model": {"kind": "layr"}})"),
                    contains("/model/kind") && contains(R"("transformer", "replay", "layer")") &&
                        contains(R"(did you mean "layer")"));
  CHECK_THROWS_WITH(parse(R"({"data": {"kind": "photographs"}})"),
                    contains("/data/kind") && contains("that program's own command"));
  CHECK_THROWS_WITH(parse(model(R"({"widht": 3})")),
                    contains("/model/options/widht") && contains(R"(did you mean "width")"));
  CHECK_THROWS_WITH(parse(model(R"({"zzz": 3})")),
                    contains("the options are width, scale, deep, name, sizes and any"));
  CHECK_THROWS_WITH(parse(R"({"model": {"kind": "layer", "width": 3}})"),
                    contains("/model/width") && contains(R"(it goes into "options")"));
  CHECK_THROWS_WITH(parse(model("[]")), contains("/model/options") && contains("an object"));
  CHECK_THROWS_WITH(parse(model(R"({"width": 3.5})")),
                    contains("/model/options/width: expected a whole number, found 3.5"));
  CHECK_THROWS_WITH(parse(model(R"({"deep": 1})")), contains("expected true or false"));
  CHECK_THROWS_WITH(parse(model(R"({"name": 1})")), contains("expected text"));
  CHECK_THROWS_WITH(parse(model(R"({"sizes": 1})")), contains("expected a list"));
  CHECK_NOTHROW(parse(model(R"({"scale": 3, "any": [1]})")));
  // Options that were not declared are passed on, and the factory misses one.
  CHECK_THROWS_WITH(load_inputs(parse(R"({"model": {"kind": "layer"}, "data": {"kind": "rows"}})")),
                    contains("/data/options/rows: expected a whole number, found no such option"));
  const Scenario null = parse(R"({"model": {"kind": "null"}})");
  CHECK_THROWS_WITH(make_model(null, *load_inputs(null), 0, 1, cpu_device()),
                    contains(R"("null" returned null)"));
  // A replayed model has no use for data.
  CHECK_THROWS_WITH(parse(R"({"model": {"kind": "replay", "profile": "/proc/self/exe"},
                              "data": {"kind": "rows"}})"),
                    contains("/data/kind") && contains(R"(found "rows")"));
}

TEST_CASE("a kind is registered once, under a name that is free") {
  register_kinds();
  const auto make = [](const ModelRequest&) { return nullptr; };
  CHECK_THROWS_WITH(register_model("layer", make, {}), contains("this name is taken"));
  CHECK_THROWS_WITH(register_model("replay", make, {}), contains(R"("replay" of "model")"));
  CHECK_THROWS_WITH(register_model("", make, {}), contains("needs a name"));
  CHECK_THROWS_WITH(register_model("x", nullptr, {}), contains("needs a factory"));
  CHECK_THROWS_WITH(register_model("x", make, {.summary = "", .options = "[1]"}),
                    contains("not a JSON object: [1]"));
  CHECK_NOTHROW(register_model("rows", make, {.summary = "Not the data set."}));
  CHECK_THROWS_WITH(make_registered_model({"missing", "{}"}, 0, 0, 1, cpu_device()),
                    contains(R"(no kind "missing")"));
}

TEST_CASE("threads can register kinds and load scenarios at the same time") {
  register_kinds();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([i] {
      register_dataset("rows-" + std::to_string(i), [](const KindOptions&) { return nullptr; }, {});
      for (int n = 0; n < 20; ++n) parse_scenario(kOwn, "test.json", "");
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(parse(R"({"data": {"kind": "rows-3"}})").data.registered.kind == "rows-3");
}

TEST_CASE("the schema and the reference have the registered kinds") {
  register_kinds();
  const Json schema = scenario_schema().at("properties").at("model");
  const auto& kinds = schema.at("properties").at("kind").at("enum");
  const auto index = std::find(kinds.begin(), kinds.end(), "layer") - kinds.begin();
  REQUIRE(index < std::ssize(kinds));
  const auto& options = schema.at("allOf")
                            .at(static_cast<std::size_t>(index))
                            .at("then")
                            .at("properties")
                            .at("options")
                            .at("properties");
  CHECK(options.at("width") == Json{{"default", 4}, {"type", "integer"}});
  CHECK(options.at("scale").at("type") == "number");
  CHECK_FALSE(options.at("any").contains("type"));
  CHECK_THAT(scenario_reference_markdown(), contains(R"(`"kind": "layer"`)"));
}
