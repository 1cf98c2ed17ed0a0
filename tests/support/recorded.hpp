#pragma once

#include <bit>
#include <cstdint>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "gradsync/autograd/parameter.hpp"
#include "gradsync/tensor/tensor.hpp"

#include "tests/support/paths.hpp"

namespace gradsync::test {

/// A file of recorded values under tests/data, e.g. "pytorch/sampler.json".
inline nlohmann::json load_recorded(const std::string& name) {
  const std::string path = gradsync::test::test_data() + "/" + name;
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path);
  return nlohmann::json::parse(file);
}

/// Floats as recorded: the bits of a float32 as 8 hex digits.
inline float float_from_bits(const std::string& hex) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(std::stoul(hex, nullptr, 16)));
}
inline std::vector<float> floats_from_bits(const nlohmann::json& hex) {
  std::vector<float> values;
  for (const auto& text : hex) values.push_back(float_from_bits(text.get<std::string>()));
  return values;
}
inline std::uint32_t bits(float value) {
  return std::bit_cast<std::uint32_t>(value);
}

inline Tensor vector_tensor(const std::vector<float>& values) {
  return Tensor::from<float>(values, {static_cast<std::int64_t>(values.size())});
}
inline std::vector<float> values_of(const Tensor& tensor) {
  const auto elements = tensor.span<float>();
  return {elements.begin(), elements.end()};
}

}  // namespace gradsync::test
