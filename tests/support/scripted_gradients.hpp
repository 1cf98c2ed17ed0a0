#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tests/support/small_models.hpp"
#include "tests/support/thread_process_group.hpp"

/// Four parameters whose gradients are known for every rank, element and iteration.
namespace gradsync::test {

/// The gradient that rank `rank` computes for element `element` of parameter `parameter`: not
/// exactly divisible by anything, so that every rounding shows.
inline float local_gradient(int rank, std::size_t parameter, std::int64_t element, int iteration) {
  return std::sin(1.0f + static_cast<float>(rank) * 7.3f + static_cast<float>(parameter) * 1.7f +
                  static_cast<float>(element) * 0.31f + static_cast<float>(iteration) * 13.1f);
}

inline std::vector<ParameterPtr> four_parameters() {
  return {make_parameter("a", {3}), make_parameter("b", {2, 2}), make_parameter("c", {5}),
          make_parameter("d", {1})};
}

/// A backward pass that reaches `parameters` from the last to the first.
inline Variable reverse_loss(Graph& graph, const std::vector<ParameterPtr>& parameters, int rank,
                             int iteration) {
  std::vector<Use> uses;
  for (std::size_t p = parameters.size(); p-- > 0;) {
    uses.push_back({parameters[p], [=](std::int64_t element) {
                      return local_gradient(rank, p, element, iteration);
                    }});
  }
  return scripted_loss(graph, uses);
}

inline std::vector<float> all_gradients(const std::vector<ParameterPtr>& parameters) {
  std::vector<float> result;
  for (const ParameterPtr& parameter : parameters) {
    const auto values = values_of(parameter->grad);
    result.insert(result.end(), values.begin(), values.end());
  }
  return result;
}

}  // namespace gradsync::test
