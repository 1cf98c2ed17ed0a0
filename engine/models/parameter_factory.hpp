#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "gradsync/autograd/parameter.hpp"

namespace gradsync {

/// Creates the parameters and buffers of a model in registration order and draws their initial
/// values. Parameter k reads stream k of the seed, so its values depend only on the seed, k and its
/// shape (rounded once to `dtype`), and are the same on every machine and device. Draws nothing on
/// the meta device.
class ParameterFactory {
 public:
  ParameterFactory(std::uint64_t seed, Device& device, DType dtype = DType::kFloat32)
      : seed_(seed), device_(&device), dtype_(dtype) {}

  ParameterPtr constant(std::string name, Shape shape, double value);
  /// Uniform in [-bound, bound).
  ParameterPtr uniform(std::string name, Shape shape, double bound);
  /// Normal with mean 0 and variance 1.
  ParameterPtr normal(std::string name, Shape shape);

  /// Untrained state, with the parameters' dtype or an explicit one.
  BufferPtr buffer(std::string name, Shape shape, double value);
  BufferPtr buffer(std::string name, Shape shape, double value, DType dtype);

  const std::vector<ParameterPtr>& parameters() const noexcept { return parameters_; }
  const std::vector<BufferPtr>& buffers() const noexcept { return buffers_; }

 private:
  ParameterPtr add(std::string name, Tensor data);
  ParameterPtr draw(std::string name, Shape shape,
                    const std::function<double(std::uint64_t index)>& value);

  std::uint64_t seed_;
  Device* device_;
  DType dtype_;
  std::vector<ParameterPtr> parameters_;
  std::vector<BufferPtr> buffers_;
};

}  // namespace gradsync
