#include "gradsync/core/pytorch_version.hpp"

#include <charconv>
#include <stdexcept>

namespace gradsync {

PytorchVersion parse_pytorch_version(std::string_view text) {
  PytorchVersion version;
  const char* const end = text.data() + text.size();
  const auto [dot, major_error] = std::from_chars(text.data(), end, version.major);
  if (major_error == std::errc{} && dot != end && *dot == '.') {
    const auto [rest, minor_error] = std::from_chars(dot + 1, end, version.minor);
    if (minor_error == std::errc{} && rest == end) return version;
  }
  throw std::invalid_argument("expected a version of PyTorch such as \"2.7\", found \"" +
                              std::string(text) + "\"");
}

std::string to_string(const PytorchVersion& version) {
  return std::to_string(version.major) + "." + std::to_string(version.minor);
}

}  // namespace gradsync
