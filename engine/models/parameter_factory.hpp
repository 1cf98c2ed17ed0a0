#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/autograd/parameter.hpp"

namespace gradsync {

/// Makes the float32 parameters of a model in registration order and draws their initial values.
/// Parameter k reads stream k of the seed, so its values depend on nothing but the seed, k and its
/// shape, and are the same on every machine and device. On the meta device nothing is drawn.
class ParameterFactory {
 public:
  ParameterFactory(std::uint64_t seed, Device& device) : seed_(seed), device_(&device) {}

  ParameterPtr constant(std::string name, Shape shape, float value);
  /// Uniform in [-bound, bound).
  ParameterPtr uniform(std::string name, Shape shape, double bound);
  /// Normal with mean 0 and variance 1.
  ParameterPtr normal(std::string name, Shape shape);

  const std::vector<ParameterPtr>& parameters() const noexcept { return parameters_; }

 private:
  ParameterPtr add(std::string name, Tensor data);
  ParameterPtr draw(std::string name, Shape shape,
                    const std::function<double(std::uint64_t index)>& value);

  std::uint64_t seed_;
  Device* device_;
  std::vector<ParameterPtr> parameters_;
};

}  // namespace gradsync
