#include "engine/models/parameter_factory.hpp"

#include <span>
#include <utility>

#include "engine/core/random.hpp"

namespace gradsync {

ParameterPtr ParameterFactory::constant(std::string name, Shape shape, float value) {
  Tensor data = Tensor::empty(std::move(shape), DType::kFloat32, *device_);
  device_->fill(data, static_cast<double>(value));
  return add(std::move(name), std::move(data));
}

ParameterPtr ParameterFactory::uniform(std::string name, Shape shape, double bound) {
  const CounterRandom random(seed_, parameters_.size());
  return draw(std::move(name), std::move(shape),
              [=](std::uint64_t index) { return random.uniform(index, -bound, bound); });
}

ParameterPtr ParameterFactory::normal(std::string name, Shape shape) {
  const CounterRandom random(seed_, parameters_.size());
  return draw(std::move(name), std::move(shape),
              [=](std::uint64_t index) { return random.normal(index); });
}

ParameterPtr ParameterFactory::draw(std::string name, Shape shape,
                                    const std::function<double(std::uint64_t index)>& value) {
  Tensor data = Tensor::empty(std::move(shape), DType::kFloat32, *device_);
  if (!data.is_meta()) {
    std::vector<float> values(static_cast<std::size_t>(data.numel()));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(value(i));
    device_->copy_from_host(data, std::as_bytes(std::span(values)));
  }
  return add(std::move(name), std::move(data));
}

ParameterPtr ParameterFactory::add(std::string name, Tensor data) {
  return parameters_.emplace_back(std::make_shared<Parameter>(std::move(name), std::move(data)));
}

}  // namespace gradsync
