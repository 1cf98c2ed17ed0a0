#pragma once

#include <compare>
#include <string>
#include <string_view>

namespace gradsync {

/// The PyTorch version to follow where versions behave differently.
struct PytorchVersion {
  int major = 2;
  int minor = 7;
  friend constexpr auto operator<=>(const PytorchVersion&, const PytorchVersion&) = default;
};

/// "2.7"; throws std::invalid_argument for anything that is not MAJOR.MINOR.
PytorchVersion parse_pytorch_version(std::string_view text);
std::string to_string(const PytorchVersion& version);

}  // namespace gradsync
