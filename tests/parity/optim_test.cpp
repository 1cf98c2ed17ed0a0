#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "engine/core/error.hpp"
#include "engine/optim/adamw.hpp"
#include "engine/optim/clip_grad_norm.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/recorded.hpp"

using gradsync::AdamW;
using gradsync::Parameter;
using gradsync::ParameterPtr;
using gradsync::Tensor;
using gradsync::test::bits;
using gradsync::test::float_from_bits;
using gradsync::test::floats_from_bits;
using gradsync::test::values_of;
using gradsync::test::vector_tensor;

namespace {

/// Equal bits; NaNs are equal whatever their sign and payload.
void check_same_bits(const std::vector<float>& actual, const std::vector<float>& expected) {
  REQUIRE(actual.size() == expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    CAPTURE(i, actual[i], expected[i]);
    if (std::isnan(expected[i])) {
      CHECK(std::isnan(actual[i]));
    } else {
      CHECK(bits(actual[i]) == bits(expected[i]));
    }
  }
}

std::vector<ParameterPtr> parameters_with_gradients(const nlohmann::json& gradients) {
  std::vector<ParameterPtr> parameters;
  for (const auto& recorded : gradients) {
    const std::vector<float> values =
        recorded.is_null() ? std::vector<float>{0} : floats_from_bits(recorded);
    auto parameter = std::make_shared<Parameter>("p", vector_tensor(values));
    if (!recorded.is_null()) parameter->grad = vector_tensor(values);
    parameters.push_back(std::move(parameter));
  }
  return parameters;
}

}  // namespace

TEST_CASE("clip_grad_norm gives PyTorch's norm and gradients, bit for bit") {
  const auto recorded = gradsync::test::load_recorded("pytorch/optim.json");
  REQUIRE(recorded.at("clip_grad_norm").size() == 16);
  for (const auto& c : recorded.at("clip_grad_norm")) {
    CAPTURE(c.at("note").get<std::string>());
    const auto parameters = parameters_with_gradients(c.at("grads_in_bits"));
    const std::string type = c.at("norm_type");
    const double norm_type =
        type == "inf" ? std::numeric_limits<double>::infinity() : std::stod(type);
    const auto clip = [&] {
      return gradsync::clip_grad_norm(parameters, c.at("max_norm"), norm_type,
                                      c.at("error_if_nonfinite"));
    };
    if (c.contains("error")) {
      CHECK_THROWS_AS(clip(), gradsync::Error);
      continue;
    }
    check_same_bits({static_cast<float>(clip())}, {float_from_bits(c.at("total_norm_bits"))});
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const auto& expected = c.at("grads_out_bits").at(i);
      REQUIRE(parameters[i]->grad.defined() == !expected.is_null());
      if (!expected.is_null()) {
        check_same_bits(values_of(parameters[i]->grad), floats_from_bits(expected));
      }
    }
  }
}

TEST_CASE("AdamW gives the parameters and moments of PyTorch 2, bit for bit") {
  const auto recorded = gradsync::test::load_recorded("pytorch/optim.json");
  REQUIRE(recorded.at("adamw").size() == 7);
  for (const auto& c : recorded.at("adamw")) {
    CAPTURE(c.at("note").get<std::string>());
    const auto& hyper = c.at("hyper");
    auto parameter =
        std::make_shared<Parameter>("p", vector_tensor(floats_from_bits(c.at("p0_bits"))));
    AdamW optimizer({parameter}, {.lr = hyper.at("lr"),
                                  .beta1 = hyper.at("betas").at(0),
                                  .beta2 = hyper.at("betas").at(1),
                                  .eps = hyper.at("eps"),
                                  .weight_decay = hyper.at("weight_decay"),
                                  .amsgrad = hyper.at("amsgrad"),
                                  .maximize = hyper.at("maximize")});
    const auto& steps = c.at("ops_of_torch2.7_single_tensor");
    const auto& gradients = c.at("grads_bits");
    REQUIRE(steps.size() == gradients.size());
    for (std::size_t s = 0; s < steps.size(); ++s) {
      CAPTURE(s);
      parameter->grad =
          gradients[s].is_null() ? Tensor{} : vector_tensor(floats_from_bits(gradients[s]));
      optimizer.step();
      const AdamW::State& state = optimizer.state().front();
      check_same_bits(values_of(parameter->data), floats_from_bits(steps[s].at("param_bits")));
      CHECK(static_cast<double>(state.step) == steps[s].at("step").get<double>());
      check_same_bits(values_of(state.exp_avg), floats_from_bits(steps[s].at("exp_avg_bits")));
      check_same_bits(values_of(state.exp_avg_sq),
                      floats_from_bits(steps[s].at("exp_avg_sq_bits")));
      if (steps[s].contains("max_exp_avg_sq_bits")) {
        check_same_bits(values_of(state.max_exp_avg_sq),
                        floats_from_bits(steps[s].at("max_exp_avg_sq_bits")));
      }
    }
  }
}

TEST_CASE("gradients are scaled by 1/world as PyTorch's reducer does on both of its paths") {
  const auto recorded = gradsync::test::load_recorded("pytorch/optim.json").at("ddp_divide");
  const auto gradient = floats_from_bits(recorded.at("grad_bits"));
  REQUIRE(recorded.at("cases").size() == 6);
  for (const auto& c : recorded.at("cases")) {
    const double world = c.at("world").get<double>();
    CAPTURE(world);
    auto& device = gradsync::cpu_device();
    const Tensor source = vector_tensor(gradient);
    Tensor copied = source.empty_like();
    device.scale(copied, source, 1.0 / world);
    check_same_bits(values_of(copied), floats_from_bits(c.at("copy_path_mul_bits")));
    Tensor divided = source.clone();
    device.divide(divided, world);
    check_same_bits(values_of(divided), floats_from_bits(c.at("alias_path_div_bits")));
  }
}
