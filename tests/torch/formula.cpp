#include "tests/torch/formula.hpp"

namespace gradsync::torch_tests {
namespace {

/// One output of SplitMix64 (Steele, Lea & Flood 2014) for the state x.
std::uint64_t splitmix64(std::uint64_t x) noexcept {
  x += 0x9E3779B97F4A7C15;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

}  // namespace

std::uint64_t stream(std::initializer_list<std::uint64_t> numbers) noexcept {
  return stream(std::span(numbers.begin(), numbers.size()));
}

std::uint64_t stream(std::span<const std::uint64_t> numbers) noexcept {
  std::uint64_t state = 0;
  for (const std::uint64_t number : numbers) state = splitmix64(state + number);
  return state;
}

Tensor uniform(std::uint64_t stream_number, const Shape& shape, DType dtype) {
  Tensor tensor = Tensor::empty(shape, dtype, cpu_device());
  std::uint64_t position = stream_number;
  if (dtype == DType::kFloat64) {
    for (double& value : tensor.span<double>())
      value = static_cast<double>(splitmix64(position++) >> 11) * 0x1p-52 - 1.0;
  } else {
    for (float& value : tensor.span<float>())
      value = static_cast<float>(static_cast<double>(splitmix64(position++) >> 40) * 0x1p-23 - 1.0);
  }
  return tensor;
}

}  // namespace gradsync::torch_tests
