// optimizer.param_groups of a scenario.
#include "gradsync/core/error.hpp"
#include "gradsync/testbed/rank/factories.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/small_models.hpp"

namespace gradsync {
namespace {

using test::Approx;
using test::contains;
using test::make_parameter;

std::vector<ParameterPtr> parameters() {
  std::vector<ParameterPtr> list{make_parameter("embed.weight", {1}),
                                 make_parameter("head.bias", {1}),
                                 make_parameter("head.weight", {1})};
  for (const ParameterPtr& parameter : list) {
    parameter->data.span<float>()[0] = 1;
    parameter->grad = parameter->data.zeros_like();
  }
  return list;
}

TEST_CASE(
    "optimizer.param_groups picks parameters by name, the rest keep the optimizer's settings") {
  OptimizerSpec spec;
  spec.options = SgdOptions{.lr = 0.5, .weight_decay = 0.5};
  spec.param_groups = {{{"*.bias"}, std::nullopt, 0.0}, {{"embed.*"}, 0.25, std::nullopt}};
  const auto list = parameters();
  const auto optimizer = make_optimizer(spec, list);
  REQUIRE(optimizer->group_count() == 3);
  CHECK(optimizer->parameters(0) == std::vector<ParameterPtr>{list[2]});
  CHECK(optimizer->learning_rate(0) == 0.5);
  CHECK(optimizer->parameters(1) == std::vector<ParameterPtr>{list[1]});
  CHECK(optimizer->learning_rate(1) == 0.5);
  CHECK(optimizer->parameters(2) == std::vector<ParameterPtr>{list[0]});
  CHECK(optimizer->learning_rate(2) == 0.25);

  optimizer->step();  // without a gradient it is the decay that acts: p - lr * decay * p
  CHECK(list[2]->data.span<float>()[0] == Approx(1 - 0.5 * 0.5));
  CHECK(list[1]->data.span<float>()[0] == 1);
  CHECK(list[0]->data.span<float>()[0] == Approx(1 - 0.25 * 0.5));
}

TEST_CASE(
    "optimizer.param_groups: a pattern without a parameter and a parameter in two are refused") {
  OptimizerSpec spec;
  spec.param_groups = {{{"*.bias"}, std::nullopt, 0.0}, {{"decoder.*"}, 0.25, std::nullopt}};
  CHECK_THROWS_WITH(make_optimizer(spec, parameters()),
                    contains("/optimizer/param_groups/1/params"));
  spec.param_groups[1].params = {"head.*"};
  CHECK_THROWS_WITH(make_optimizer(spec, parameters()), contains("head.bias"));
  spec.param_groups = {{{"*"}, 0.25, std::nullopt}};
  CHECK(make_optimizer(spec, parameters())->group_count() == 1);  // nothing is left over
}

}  // namespace
}  // namespace gradsync
