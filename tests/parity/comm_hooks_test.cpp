#include "gradsync/ddp/comm_hooks.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "gradsync/core/generator.hpp"
#include "gradsync/ddp/distributed_data_parallel.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/given_values.hpp"
#include "tests/support/recorded.hpp"
#include "tests/support/small_models.hpp"
#include "tests/support/thread_process_group.hpp"

using namespace gradsync;
using gradsync::test::Approx;
using gradsync::test::given_value;
using gradsync::test::LambdaModel;
using gradsync::test::make_parameter;
using gradsync::test::RankContext;
using gradsync::test::results_of_ranks;
using gradsync::test::scripted_loss;
using gradsync::test::Use;
using gradsync::test::values_of;

namespace {

using Gradients = std::vector<std::vector<float>>;  // by parameter

std::vector<float> as_floats(const Tensor& tensor) {
  Tensor wide = Tensor::empty(tensor.shape(), DType::kFloat32, cpu_device());
  cpu_device().cast(wide, tensor);
  return values_of(wide);
}

PowerSgdOptions power_sgd_options(const nlohmann::json& recorded) {
  PowerSgdOptions options;
  options.start_powerSGD_iter = 2;
  options.matrix_approximation_rank = recorded.value("matrix_approximation_rank", 1);
  options.use_error_feedback = recorded.value("use_error_feedback", true);
  options.warm_start = recorded.value("warm_start", true);
  return options;
}

/// Rank 0's gradients in iterations 0, 2 and 4, as recorded.
std::vector<Gradients> run_case(const nlohmann::json& recorded, const nlohmann::json& shapes) {
  return results_of_ranks(recorded.at("world"), [&](RankContext& rank) {
    const DType dtype = parse_dtype(recorded.at("dtype").get<std::string>());
    std::vector<ParameterPtr> parameters;
    for (const auto& shape : shapes) {
      parameters.push_back(make_parameter("p" + std::to_string(parameters.size()),
                                          shape.get<Shape>(), 0, true, dtype));
    }
    int iteration = 0;
    LambdaModel model(parameters, [&](const Batch&, Graph& graph) {
      std::vector<Use> uses;
      for (const int tensor : recorded.at("order")) {
        uses.push_back({parameters[static_cast<std::size_t>(tensor)],
                        [&rank, tensor, iteration](std::int64_t element) {
                          return given_value(rank.rank, iteration, tensor, element);
                        }});
      }
      return std::vector{scripted_loss(graph, uses)};
    });
    DistributedDataParallel ddp(model, rank.group, {.pytorch_version = {1, 13}});
    std::string name = recorded.at("hook");
    name = name.substr(0, name.find(' '));
    if (name != "none") {
      ddp.register_comm_hook(make_comm_hook(name, power_sgd_options(recorded.at("options"))), name);
    }
    std::vector<Gradients> result;
    for (; iteration < 5; ++iteration) {
      for (const auto& parameter : parameters) parameter->grad = Tensor();
      rank.graph.backward(ddp.forward(model, Batch{}, rank.graph).front());
      if (iteration % 2 != 0) continue;
      Gradients& of_iteration = result.emplace_back();
      for (const auto& parameter : parameters) of_iteration.push_back(as_floats(parameter->grad));
    }
    return result;
  })[0];
}

}  // namespace

TEST_CASE("gradients reduced by the communication hooks are PyTorch's") {
  const auto recorded = gradsync::test::load_recorded("pytorch/comm_hooks.json");
  REQUIRE(recorded.at("cases").size() == 20);
  for (const auto& c : recorded.at("cases")) {
    const std::string hook = c.at("hook");
    CAPTURE(hook, c.at("world").get<int>(), c.at("dtype").get<std::string>());
    const auto actual = run_case(c, recorded.at("shapes"));
    const auto& expected = c.at("gradients_bits");
    REQUIRE(actual.size() == expected.size());
    for (std::size_t i = 0; i < actual.size(); ++i) {
      for (std::size_t p = 0; p < actual[i].size(); ++p) {
        const auto values = gradsync::test::floats_from_bits(expected[i][p]);
        CAPTURE(i, p);
        if (hook.rfind("power_sgd", 0) != 0 || i == 0) {
          CHECK(actual[i][p] == values);  // to the bit
        } else {
          // PyTorch draws its first factors with approximate logarithms and cosines, and makes them
          // orthonormal with LAPACK.
          for (std::size_t e = 0; e < values.size(); ++e) {
            CHECK(std::abs(actual[i][p][e] - values[e]) < 2e-5);
          }
        }
      }
    }
  }
}

TEST_CASE("randn draws PyTorch's normal numbers within 1e-5") {
  const auto recorded = gradsync::test::load_recorded("pytorch/optim_more.json").at("randn");
  REQUIRE(recorded.size() == 5);
  for (const auto& c : recorded) {
    Generator generator(c.at("seed").get<std::uint64_t>());
    const auto expected = c.at("values").get<std::vector<float>>();
    const auto actual = generator.randn(expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      CAPTURE(c.at("seed").get<std::uint64_t>(), expected.size(), i);
      CHECK(std::abs(actual[i] - expected[i]) < 1e-5);
    }
  }
}
