#include "gradsync/models/replay.hpp"

#include <memory>
#include <string>
#include <vector>

#include "gradsync/core/error.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/fake_clock.hpp"
#include "tests/support/recorded.hpp"

using gradsync::BackwardPass;
using gradsync::Batch;
using gradsync::DType;
using gradsync::Graph;
using gradsync::ModelProfile;
using gradsync::Parameter;
using gradsync::parse_profile;
using gradsync::ReplayModel;
using gradsync::Seconds;
using gradsync::test::Approx;
using gradsync::test::contains;
using gradsync::test::FakeClock;

namespace {

const char* const kProfile = R"({
  "name": "three", "source": "made up", "confidence": "synthetic",
  "forward": "10ms", "optimizer": "2ms",
  "parameters": [
    {"name": "a", "shape": [2, 3], "ready": "9ms"},
    {"name": "b", "shape": [4], "dtype": "bfloat16", "ready": "4ms"},
    {"name": "c", "shape": [], "ready": "4ms"}
  ]
})";

std::shared_ptr<const ModelProfile> profile() {
  return std::make_shared<const ModelProfile>(parse_profile(kProfile, "three.json"));
}

}  // namespace

TEST_CASE("a profile is read with its times and shapes") {
  const ModelProfile p = parse_profile(kProfile, "three.json");
  CHECK(p.name == "three");
  CHECK(p.forward_time.count() == Approx(0.010));
  CHECK(p.optimizer_time.count() == Approx(0.002));
  REQUIRE(p.parameters.size() == 3);
  CHECK(p.parameters[0].shape == gradsync::Shape{2, 3});
  CHECK(p.parameters[1].dtype == DType::kBFloat16);
  CHECK(p.parameter_count() == 11);
  CHECK(p.ready_order() == std::vector<std::size_t>{2, 1, 0});  // equal times: last one first
}

TEST_CASE("a mistake in a profile is named with file and JSON pointer") {
  const auto mistake = [](std::string from, const std::string& to) {
    std::string text = kProfile;
    text.replace(text.find(from), from.size(), to);
    return parse_profile(text, "p.json");
  };
  CHECK_THROWS_WITH(mistake("\"10ms\"", "10"),
                    contains("p.json: /forward: expected a duration") && contains("found 10"));
  CHECK_THROWS_WITH(mistake("\"9ms\"", "\"9\""), contains("/parameters/0/ready"));
  CHECK_THROWS_WITH(mistake("[4]", "[-4]"), contains("/parameters/1/shape: expected a shape"));
  CHECK_THROWS_WITH(mistake("bfloat16", "int64"), contains("/parameters/1/dtype"));
  CHECK_THROWS_WITH(mistake("bfloat16", "fp16"), contains("float32, float64"));
  CHECK_THROWS_WITH(mistake("synthetic", "guessed"), contains("/confidence: expected one of"));
  CHECK_THROWS_WITH(mistake("\"forward\"", "\"forwards\""), contains("the key \"forward\""));
  CHECK_THROWS_WITH(mistake("\"dtype\"", "\"dtyp\""),
                    contains("/parameters/1/dtyp: expected no key") && contains("shape, ready"));
  CHECK_THROWS_WITH(mistake("\"a\"", "\"\""), contains("/parameters/0/name"));
  CHECK_THROWS_WITH(mistake("{", "{{"), contains("p.json: expected a model profile in JSON"));
  CHECK_THROWS_WITH(parse_profile("[]", "p.json"), contains("p.json: expected an object"));
  CHECK_THROWS_WITH(gradsync::load_profile("/nowhere/p.json"), contains("No such file"));
}

TEST_CASE("a profile's buffers are the replayed model's") {
  std::string text = kProfile;
  text.insert(text.rfind('}'), R"(, "buffers": [
    {"name": "bn.running_mean", "shape": [8]},
    {"name": "bn.num_batches_tracked", "shape": [], "dtype": "int64"}
  ])");
  const auto with_buffers = std::make_shared<const ModelProfile>(parse_profile(text, "p.json"));
  const ReplayModel model(with_buffers, 0, 2, {}, gradsync::cpu_device());
  REQUIRE(model.buffers().size() == 2);
  CHECK(model.buffers()[0]->data.shape() == gradsync::Shape{8});
  CHECK(model.buffers()[1]->name == "bn.num_batches_tracked");
  CHECK(model.buffers()[1]->data.dtype() == DType::kInt64);

  text.replace(text.rfind("int64"), 5, "bool");
  CHECK_THROWS_WITH(parse_profile(text, "p.json"), contains("/buffers/1/dtype"));
}

TEST_CASE("a replayed step takes the profile's time and fires the hooks in its order") {
  FakeClock clock;
  Graph graph(clock);
  gradsync::Device* device = GENERATE(&gradsync::cpu_device(), &gradsync::meta_device());
  ReplayModel model(profile(), 0, 2, {.compute_scale = 2}, *device);

  struct Event {
    std::string parameter;
    double seconds;
  };
  std::vector<Event> events;
  for (const auto& parameter : model.parameters()) {
    parameter->add_gradient_hook([&](Parameter& p, BackwardPass&) {
      CHECK(p.grad.shape() == p.data.shape());
      CHECK(p.grad.dtype() == p.data.dtype());
      events.push_back({p.name(), clock.now().count()});
    });
  }
  const auto outputs = model.forward(Batch{}, graph);
  CHECK(clock.now().count() == Approx(0.020));
  graph.backward(outputs.front());
  REQUIRE(events.size() == 3);
  CHECK(events[0].parameter == "c");
  CHECK(events[0].seconds == Approx(0.028));
  CHECK(events[1].parameter == "b");
  CHECK(events[1].seconds == Approx(0.028));
  CHECK(events[2].parameter == "a");
  CHECK(events[2].seconds == Approx(0.038));
  CHECK(model.replayed_optimizer_time().count() == Approx(0.004));
}

TEST_CASE("replayed gradients hold exactly what replay_gradient says") {
  FakeClock clock;
  Graph graph(clock);
  constexpr int kWorld = 3;
  ReplayModel model(profile(), 1, kWorld, {}, gradsync::cpu_device());
  Batch batch;
  batch.global_step = 5;
  graph.backward(model.forward(batch, graph).front());
  const auto gradient = gradsync::test::values_of(model.parameters()[0]->grad);
  REQUIRE(gradient.size() == 6);
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    CHECK(gradient[i] == gradsync::replay_gradient(kWorld, 1, 5, 0, static_cast<std::int64_t>(i)));
  }
}

TEST_CASE("replayed gradients have an exact mean whatever the world size") {
  for (const int world : {1, 2, 3, 5, 6, 7, 11, 1000}) {
    const float factor = static_cast<float>(1.0 / world);
    bool differs = false;
    for (std::int64_t element = 0; element < 50; ++element) {
      float multiplied = 0;
      float divided = 0;
      for (int rank = world - 1; rank >= 0; --rank) {
        const auto local =
            static_cast<float>(gradsync::replay_gradient(world, rank, 7, 2, element));
        multiplied += local * factor;
        divided += local / static_cast<float>(world);
      }
      const double mean = gradsync::replay_mean_gradient(world, 7, 2, element);
      CHECK(static_cast<double>(multiplied) == mean);
      CHECK(static_cast<double>(divided) == mean);
      differs |= mean != gradsync::replay_mean_gradient(world, 8, 2, element);
    }
    CHECK(differs);
  }
}
