#pragma once

#include <cstdint>

#include "gradsync/core/float16.hpp"

namespace gradsync {

/// 16-bit element types, for Tensor::span and for kernels. Arithmetic converts through float;
/// engine/core/float16.hpp has the conversions (round to nearest even).

/// IEEE 754 binary16.
struct Half {
  std::uint16_t bits = 0;
  Half() = default;
  constexpr explicit Half(float value) noexcept : bits(float_to_float16(value)) {}
  constexpr explicit operator float() const noexcept { return float16_to_float(bits); }
};

/// The upper 16 bits of a float.
struct BFloat16 {
  std::uint16_t bits = 0;
  BFloat16() = default;
  constexpr explicit BFloat16(float value) noexcept : bits(float_to_bfloat16(value)) {}
  constexpr explicit operator float() const noexcept { return bfloat16_to_float(bits); }
};

}  // namespace gradsync
