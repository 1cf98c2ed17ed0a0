#pragma once

#include <cstdint>
#include <string_view>

namespace gradsync {

/// FNV-1a: unlike std::hash, the same on every rank whatever its standard library.
constexpr std::uint32_t stable_hash(std::string_view text) noexcept {
  std::uint32_t value = 2166136261u;
  for (const char c : text) value = (value ^ static_cast<unsigned char>(c)) * 16777619u;
  return value;
}

}  // namespace gradsync
