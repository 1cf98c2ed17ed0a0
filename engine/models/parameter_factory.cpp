#include "gradsync/models/parameter_factory.hpp"

#include <utility>

#include "gradsync/core/random.hpp"

namespace gradsync {

ParameterPtr ParameterFactory::constant(std::string name, Shape shape, double value) {
  Tensor data = Tensor::empty(std::move(shape), dtype_, *device_);
  device_->fill(data, value);
  return add(std::move(name), std::move(data));
}

BufferPtr ParameterFactory::buffer(std::string name, Shape shape, double value) {
  return buffer(std::move(name), std::move(shape), value, dtype_);
}

BufferPtr ParameterFactory::buffer(std::string name, Shape shape, double value, DType dtype) {
  Tensor data = Tensor::empty(std::move(shape), dtype, *device_);
  device_->fill(data, value);
  return buffers_.emplace_back(std::make_shared<Buffer>(Buffer{std::move(name), std::move(data)}));
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
  Tensor data = Tensor::empty(std::move(shape), dtype_, *device_);
  if (!data.is_meta()) {
    std::vector<double> values(static_cast<std::size_t>(data.numel()));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = value(i);
    Tensor rounded = Tensor::empty(data.shape(), dtype_, cpu_device());
    cpu_device().cast(rounded, Tensor::from<double>(values, data.shape()));
    device_->copy_from_host(data, {rounded.data(), static_cast<std::size_t>(rounded.nbytes())});
  }
  return add(std::move(name), std::move(data));
}

ParameterPtr ParameterFactory::add(std::string name, Tensor data) {
  return parameters_.emplace_back(std::make_shared<Parameter>(std::move(name), std::move(data)));
}

}  // namespace gradsync
