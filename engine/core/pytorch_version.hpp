#pragma once

#include <compare>

namespace gradsync {

/// Whose rules to follow where versions of PyTorch differ.
struct PytorchVersion {
  int major = 2;
  int minor = 7;
  friend constexpr auto operator<=>(const PytorchVersion&, const PytorchVersion&) = default;
};

}  // namespace gradsync
