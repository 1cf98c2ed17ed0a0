#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "gradsync/core/error.hpp"
#include "gradsync/optim/adamw.hpp"
#include "gradsync/optim/clip_grad_norm.hpp"
#include "gradsync/optim/lr_schedule.hpp"
#include "gradsync/optim/sgd.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/given_values.hpp"
#include "tests/support/recorded.hpp"

using gradsync::AdamW;
using gradsync::AdamWOptions;
using gradsync::Parameter;
using gradsync::ParameterPtr;
using gradsync::Tensor;
using gradsync::test::Approx;
using gradsync::test::bits;
using gradsync::test::float_from_bits;
using gradsync::test::floats_from_bits;
using gradsync::test::given_values;
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

TEST_CASE("SGD gives PyTorch's parameters and momentum, bit for bit") {
  const auto recorded = gradsync::test::load_recorded("pytorch/optim_more.json").at("sgd");
  REQUIRE(recorded.at("cases").size() == 14);
  for (const auto& c : recorded.at("cases")) {
    const auto& hyper = c.at("hyper");
    const auto n = c.at("n").get<std::size_t>();
    CAPTURE(hyper.dump(), n);
    auto parameter = std::make_shared<Parameter>("p", vector_tensor(given_values(0, 0, 0, n)));
    gradsync::Sgd optimizer({parameter}, {.lr = hyper.at("lr"),
                                          .momentum = hyper.value("momentum", 0.0),
                                          .dampening = hyper.value("dampening", 0.0),
                                          .weight_decay = hyper.value("weight_decay", 0.0),
                                          .nesterov = hyper.value("nesterov", false),
                                          .maximize = hyper.value("maximize", false)});
    for (int step = 0; step < 4; ++step) {
      CAPTURE(step);
      parameter->grad = step == 2 ? Tensor{} : vector_tensor(given_values(0, step, 1, n));
      optimizer.step();
      const auto& expected = c.at("steps").at(static_cast<std::size_t>(step));
      check_same_bits(values_of(parameter->data), floats_from_bits(expected.at("param_bits")));
      const Tensor& momentum = optimizer.momentum_buffers().front();
      REQUIRE(momentum.defined() == !expected.at("momentum_bits").is_null());
      if (momentum.defined()) {
        check_same_bits(values_of(momentum), floats_from_bits(expected.at("momentum_bits")));
      }
    }
  }
}

TEST_CASE("parameter groups have options and learning rates of their own, as in PyTorch") {
  const auto recorded = gradsync::test::load_recorded("pytorch/optim_more.json").at("groups");
  auto first = std::make_shared<Parameter>("first", vector_tensor(given_values(0, 0, 0, 8)));
  auto second = std::make_shared<Parameter>("second", vector_tensor(given_values(0, 0, 2, 8)));
  AdamWOptions of_first;
  of_first.lr = 0.01;
  of_first.weight_decay = 0;
  AdamWOptions of_second;
  of_second.lr = 0.002;
  of_second.beta1 = 0.8;
  of_second.beta2 = 0.9;
  AdamW optimizer(std::vector<AdamW::ParameterGroup>{{{first}, of_first}, {{second}, of_second}});
  for (int step = 0; step < 3; ++step) {
    first->grad = vector_tensor(given_values(0, step, 1, 8));
    second->grad = vector_tensor(given_values(0, step, 3, 8));
    optimizer.step();
    const auto& expected = recorded.at("steps_bits").at(static_cast<std::size_t>(step));
    check_same_bits(values_of(first->data), floats_from_bits(expected.at(0)));
    check_same_bits(values_of(second->data), floats_from_bits(expected.at(1)));
    optimizer.set_learning_rate(optimizer.learning_rate(0) * 0.5, 0);
  }
}

TEST_CASE("learning-rate schedules are PyTorch's within 1e-12") {
  const auto recorded = gradsync::test::load_recorded("pytorch/optim_more.json").at("schedules");
  REQUIRE(recorded.size() == 5);
  for (const auto& c : recorded) {
    gradsync::LrSchedule schedule;
    const std::string kind = c.at("kind");
    if (kind == "step") schedule.kind = gradsync::LrSchedule::Kind::kStep;
    if (kind == "cosine") schedule.kind = gradsync::LrSchedule::Kind::kCosine;
    schedule.step_size = c.value("step_size", schedule.step_size);
    schedule.gamma = c.value("gamma", schedule.gamma);
    schedule.total_steps = c.value("total_steps", schedule.total_steps);
    schedule.min_lr = c.value("min_lr", schedule.min_lr);
    schedule.warmup_steps = c.value("warmup_steps", schedule.warmup_steps);
    schedule.warmup_start_factor = c.value("warmup_start_factor", schedule.warmup_start_factor);
    const auto rates = c.at("lr").get<std::vector<double>>();
    for (std::size_t step = 0; step < rates.size(); ++step) {
      CAPTURE(kind, schedule.warmup_steps, step);
      CHECK(gradsync::scheduled_lr(schedule, 0.1, static_cast<std::int64_t>(step)) ==
            Approx(rates[step]).epsilon(1e-12));
    }
  }
}

TEST_CASE("float64 gradients are clipped as in PyTorch within 1e-15") {
  const auto recorded = gradsync::test::load_recorded("pytorch/optim_more.json");
  REQUIRE(recorded.at("clip_float64").size() == 3);
  for (const auto& c : recorded.at("clip_float64")) {
    std::vector<ParameterPtr> parameters;
    for (const auto& [tensor, n] : std::vector<std::pair<int, std::size_t>>{{0, 37}, {1, 5}}) {
      const auto values = given_values(0, 0, tensor, n);
      const Tensor gradient =
          Tensor::from<double>({values.begin(), values.end()}, {static_cast<std::int64_t>(n)});
      parameters.push_back(std::make_shared<Parameter>("p", gradient.zeros_like()));
      parameters.back()->grad = gradient;
    }
    const std::string type = c.at("norm_type");
    const double norm_type =
        type == "inf" ? std::numeric_limits<double>::infinity() : std::stod(type);
    CAPTURE(type);
    CHECK(gradsync::clip_grad_norm(parameters, 1.0, norm_type) ==
          Approx(c.at("norm").get<double>()).epsilon(1e-15));
    for (std::size_t p = 0; p < parameters.size(); ++p) {
      const auto expected = c.at("grads").at(p).get<std::vector<double>>();
      const auto actual = parameters[p]->grad.span<double>();
      for (std::size_t i = 0; i < expected.size(); ++i) {
        CHECK(actual[i] == Approx(expected[i]).epsilon(1e-15));
      }
    }
  }
}
