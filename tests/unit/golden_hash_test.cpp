// The golden hashes of scenarios/determinism-replay*.json do not rest on a run of the engine: here
// they follow from the definition of the replayed gradients and of SGD.

#include <memory>

#include "gradsync/autograd/parameter_hash.hpp"
#include "gradsync/models/replay.hpp"
#include "gradsync/testbed/scenario/scenario.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/paths.hpp"

using namespace gradsync;

TEST_CASE("golden hashes of the replayed scenarios follow from their definition") {
  for (const auto& [file, ranks] : {std::pair{"determinism-replay.json", 2},
                                    {"determinism-replay-3.json", 3},
                                    {"determinism-replay-4.json", 4}}) {
    CAPTURE(file);
    const Scenario s = load_scenario(gradsync::test::source_dir() + "/scenarios/" + file);
    REQUIRE(s.ranks == ranks);
    REQUIRE(std::holds_alternative<SgdOptions>(s.optimizer.options));
    const auto& sgd = std::get<SgdOptions>(s.optimizer.options);
    REQUIRE(sgd.momentum == 0);
    REQUIRE(sgd.weight_decay == 0);
    REQUIRE_FALSE(s.train.clip_grad_norm.has_value());
    const std::int64_t steps = s.expect.steps_completed.value();
    REQUIRE(steps == s.data.samples / s.ranks / s.train.batch_size);

    const auto profile = std::make_shared<const ModelProfile>(load_profile(s.model.replay.profile));
    const ReplayModel model(profile, 0, ranks, ReplayOptions{}, cpu_device());
    bool exact = true;
    for (std::size_t p = 0; p < model.parameters().size(); ++p) {
      const std::span<float> values = model.parameters()[p]->data.span<float>();
      for (std::size_t i = 0; i < values.size(); ++i) {
        double value = values[i];
        for (std::int64_t step = 0; step < steps; ++step) {
          value -= sgd.lr * replay_mean_gradient(ranks, step, p, static_cast<std::int64_t>(i));
          exact = exact && value == static_cast<double>(static_cast<float>(value));
        }
        values[i] = static_cast<float>(value);
      }
    }
    CHECK(exact);  // nothing is rounded, so no order of summation can change a bit
    CHECK(hash_parameters(model.parameters())->hex() == s.expect.parameter_hash.value());
  }
}
