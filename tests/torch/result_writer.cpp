#include "tests/torch/result_writer.hpp"

#include <utility>
#include <vector>

namespace gradsync::torch_tests {
namespace {

std::ofstream open(std::filesystem::path path) {
  std::ofstream file(path, std::ios::binary);
  file.exceptions(std::ios::failbit | std::ios::badbit);
  return file;
}

}  // namespace

ResultWriter::ResultWriter(const std::filesystem::path& stem)
    : stem_(stem), binary_(open(std::filesystem::path(stem).replace_extension(".bin"))) {}

void ResultWriter::array(const std::string& key, const Tensor& tensor, DType dtype) {
  if (!tensor.defined()) {
    arrays_.push_back({key, to_string(dtype), nullptr});
    return;
  }
  arrays_.push_back({key, to_string(tensor.dtype()), tensor.numel()});
  std::vector<char> bytes(static_cast<std::size_t>(tensor.nbytes()));
  tensor.device().copy_to_host(std::as_writable_bytes(std::span(bytes)), tensor);
  binary_.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

void ResultWriter::finish(nlohmann::json fields) {
  binary_.close();
  fields["arrays"] = std::move(arrays_);
  open(std::filesystem::path(stem_).replace_extension(".json")) << fields.dump();
}

}  // namespace gradsync::torch_tests
