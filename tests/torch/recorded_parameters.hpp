#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "gradsync/autograd/parameter.hpp"

namespace gradsync::torch_tests {

/// The parameters that a rank of PyTorch's side had at the start of each step, read back from its
/// result (tests/torch/results.py). float32 only: the models that compute are.
class RecordedParameters {
 public:
  /// Reads STEM.json and STEM.bin. Throws std::runtime_error if the binary file is too short.
  explicit RecordedParameters(const std::filesystem::path& stem);

  /// Overwrites the data of `parameters` with what they were at the start of `step` (from 0).
  /// Throws std::out_of_range if the step or a name was not recorded.
  void set(std::int64_t step, const std::vector<ParameterPtr>& parameters) const;

 private:
  std::map<std::string, std::vector<float>> values_;  // by "step N/parameter NAME"
};

}  // namespace gradsync::torch_tests
