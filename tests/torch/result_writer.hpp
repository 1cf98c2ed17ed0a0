#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include <nlohmann/json.hpp>

#include "gradsync/tensor/tensor.hpp"

namespace gradsync::torch_tests {

/// Writes what tests/torch/results.py reads: STEM.json, and STEM.bin with the arrays.
class ResultWriter {
 public:
  explicit ResultWriter(const std::filesystem::path& stem);

  /// `dtype` stands for an undefined tensor, which is noted as one that does not exist.
  void array(const std::string& key, const Tensor& tensor, DType dtype);
  void finish(nlohmann::json fields);

 private:
  std::filesystem::path stem_;
  std::ofstream binary_;
  nlohmann::json arrays_ = nlohmann::json::array();
};

}  // namespace gradsync::torch_tests
