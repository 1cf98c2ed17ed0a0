#pragma once

#include <fmt/format.h>

#include "gradsync/core/error.hpp"

namespace gradsync {

/// Throws Error(kMisuse), where PyTorch's optimizers raise ValueError, unless `valid`. Callers
/// phrase the condition so that NaN fails it.
inline void check_option(bool valid, const char* optimizer, const char* name, double value) {
  if (!valid) {
    throw Error(ErrorCode::kMisuse, fmt::format("{}: invalid {}: {}", optimizer, name, value));
  }
}

}  // namespace gradsync
