#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gradsync/autograd/parameter.hpp"

namespace gradsync {

/// A 128-bit hash in canonical (big-endian) byte order, as printed by `xxh128sum`.
struct Hash128 {
  std::array<std::uint8_t, 16> bytes{};

  std::string hex() const;  ///< 32 lower-case digits
  friend bool operator==(const Hash128&, const Hash128&) = default;
};

/// XXH3-128 over the bytes of all parameters, concatenated in the given (registration) order, in
/// memory layout: little endian, row-major. Empty if any parameter is on the meta device.
std::optional<Hash128> hash_parameters(std::span<const ParameterPtr> parameters);

/// XXH3-128 of the numbers as little-endian int64.
Hash128 hash_indices(std::span<const std::int64_t> indices);

/// XXH3-128 of the text.
Hash128 hash_text(std::string_view text);

/// The lower 32 bits of XXH3-64 of each tensor's bytes; empty if any tensor is on the meta device.
std::vector<std::uint32_t> checksum(std::span<const Tensor> tensors);

}  // namespace gradsync
