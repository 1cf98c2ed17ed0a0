#include "tests/torch/recorded_parameters.hpp"

#include <algorithm>
#include <fstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gradsync/tensor/dtype.hpp"

namespace gradsync::torch_tests {

RecordedParameters::RecordedParameters(const std::filesystem::path& stem) {
  const nlohmann::json described =
      nlohmann::json::parse(std::ifstream(std::filesystem::path(stem).replace_extension(".json")));
  std::ifstream binary(std::filesystem::path(stem).replace_extension(".bin"), std::ios::binary);
  binary.exceptions(std::ios::failbit | std::ios::badbit | std::ios::eofbit);
  for (const auto& array : described.at("arrays")) {
    if (array.at(2).is_null()) continue;
    const std::string key = array.at(0);
    const auto count = array.at(2).get<std::size_t>();
    if (key.find("/parameter ") == std::string::npos) {
      const DType dtype = parse_dtype(array.at(1).get<std::string>());
      binary.ignore(static_cast<std::streamsize>(count * element_size(dtype)));
      continue;
    }
    std::vector<float>& values = values_[key];
    values.resize(count);
    const auto bytes = std::as_writable_bytes(std::span(values));
    binary.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  }
}

void RecordedParameters::set(std::int64_t step, const std::vector<ParameterPtr>& parameters) const {
  for (const ParameterPtr& parameter : parameters) {
    const auto& values = values_.at(fmt::format("step {}/parameter {}", step, parameter->name()));
    std::ranges::copy(values, parameter->data.span<float>().begin());
  }
}

}  // namespace gradsync::torch_tests
