// Models and data sets that a program brings along, named by its scenarios.
#include "gradsync/testbed/scenario/registry.hpp"

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

namespace {

/// One linear layer over the features of "rows".
class OneLayer final : public Model {
 public:
  explicit OneLayer(const ModelRequest& request)
      : factory_(request.seed, request.device),
        layer_(factory_, "layer", 3, request.options.integer("width")) {}
  const std::vector<ParameterPtr>& parameters() const override { return factory_.parameters(); }
  const std::vector<BufferPtr>& buffers() const override { return factory_.buffers(); }
  std::vector<Variable> forward(const Batch& batch, Graph& graph) override {
    return {ops::sum(graph, layer_.forward(graph, {batch.tensors.at("features"), nullptr}))};
  }

 private:
  ParameterFactory factory_;
  Linear layer_;
};

Registry registry() {
  Registry registry;
  registry.register_model(
      "layer", [](const ModelRequest& request) { return std::make_unique<OneLayer>(request); },
      {.summary = "One layer.", .defaults = R"({"width": 4, "scale": 0.5, "deep": false})"});
  registry.register_dataset("rows", [](const KindOptions& options) {
    const std::int64_t rows = options.integer("rows");
    return make_tensor_dataset(
        {{"features", Tensor::zeros({rows, 3}, DType::kFloat32, cpu_device())}});
  });
  registry.register_model("nothing", [](const ModelRequest&) { return nullptr; });
  return registry;
}

Scenario parse(const std::string& text) {
  return parse_scenario(text, "test.json", "", {}, registry());
}

constexpr const char* kOwn =
    R"({"ranks": 2, "model": {"kind": "layer", "//": "a comment", "width": 2},
        "data": {"kind": "rows", "rows": 12}, "train": {"batch_size": 3}})";

}  // namespace

TEST_CASE("a scenario names a model and a data set of the program") {
  const Registry known = registry();
  const Scenario scenario = parse_scenario(kOwn, "test.json", "", {}, known);
  const auto json = to_json(scenario);
  CHECK(json.at("model") == nlohmann::ordered_json::parse(
                                R"({"kind": "layer", "width": 2, "scale": 0.5, "deep": false})"));
  CHECK(json.at("data") == nlohmann::ordered_json::parse(R"({"kind": "rows", "rows": 12})"));
  CHECK(parse_scenario(json.dump(), "again.json", "", {}, known).model == scenario.model);

  const auto inputs = load_inputs(scenario);
  CHECK(inputs->dataset->size() == 12);
  const auto model = make_model(scenario, *inputs, 0, 2, cpu_device());
  CHECK(model->parameters().front()->data.shape() == Shape{2, 3});
}

TEST_CASE("options of a registered kind can be set from the command line") {
  const Scenario scenario = parse_scenario(
      kOwn, "test.json", "", {{"model.width", "7", "--set model.width=7"}}, registry());
  CHECK(to_json(scenario).at("model").at("width") == 7);
}

TEST_CASE("a model of the program trains as the others do") {
  const auto reports = test::train_ranks(parse(kOwn));
  REQUIRE(reports.size() == 2);
  for (const RankReport& report : reports) {
    CHECK(report.steps_completed == 2);
    CHECK(report.final_parameter_hash == reports.front().final_parameter_hash);
  }
}

TEST_CASE("mistakes about registered kinds are errors with their place") {
  CHECK_THROWS_WITH(
      parse(R"({"model": {"kind": "lair"}})"),
      contains("/model/kind") && contains(R"("transformer", "replay", "layer" or "nothing")"));
  CHECK_THROWS_WITH(parse(R"({"model": {"kind": "layr"}})"), contains("did you mean \"layer\""));
  CHECK_THROWS_WITH(parse(R"({"model": {"kind": "layer", "widht": 3}})"),
                    contains("/model/widht") && contains("did you mean \"width\""));
  CHECK_THROWS_WITH(parse(R"({"model": {"kind": "layer", "zzz": 3}})"),
                    contains("the keys here are kind, width, scale and deep"));
  CHECK_THROWS_WITH(parse(R"({"model": {"kind": "layer", "width": 3.5}})"),
                    contains("/model/width: expected a whole number, found 3.5"));
  CHECK_THROWS_WITH(parse(R"({"model": {"kind": "layer", "deep": 1}})"),
                    contains("expected true or false"));
  // Without defaults any option is passed on, and it is the factory that misses one.
  CHECK_THROWS_WITH(load_inputs(parse(R"({"model": {"kind": "layer"}, "data": {"kind": "rows"}})")),
                    contains("/data/rows: expected a whole number, found nothing"));
  const Scenario nothing = parse(R"({"model": {"kind": "nothing"}})");
  CHECK_THROWS_WITH(make_model(nothing, *load_inputs(nothing), 0, 1, cpu_device()),
                    contains("\"nothing\" returned nothing"));
  CHECK_THROWS_WITH(parse_scenario(kOwn, "test.json", ""), contains("/model/kind"));
}

TEST_CASE("a kind is registered once, by a name of its own") {
  Registry known = registry();
  const auto make = [](const ModelRequest&) { return nullptr; };
  CHECK_THROWS_WITH(known.register_model("layer", make), contains("one of this name"));
  CHECK_THROWS_WITH(known.register_model("replay", make), contains("\"replay\" of \"model\""));
  CHECK_THROWS_WITH(known.register_model("", make), contains("needs a name"));
  CHECK_THROWS_WITH(known.register_model("x", make, {.defaults = "[1]"}),
                    contains("not a JSON object: [1]"));
  CHECK_NOTHROW(known.register_model("rows", make));  // that is a data set
}

TEST_CASE("the schema has the kinds of a program where it is asked of it") {
  const auto schema = scenario_schema(registry());
  const auto& model = schema.at("properties").at("model");
  CHECK(model.at("properties").at("kind").at("enum").size() == 4);
  const auto& shape = model.at("allOf").at(2).at("then");
  CHECK(shape.at("properties").at("width").at("default") == 4);
  CHECK(shape.at("properties").at("scale").at("type") == "number");
  CHECK(scenario_schema().at("properties").at("model").at("allOf").size() == 2);
}
