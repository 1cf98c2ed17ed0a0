#pragma once

#include <cstddef>
#include <string_view>

namespace gradsync {

/// Element types, named as in PyTorch.
enum class DType { kFloat32, kFloat64, kFloat16, kBFloat16, kInt32, kInt64, kUInt8 };

/// Size of one element, in bytes.
std::size_t element_size(DType dtype) noexcept;
/// "float32", "bfloat16", ...
std::string_view to_string(DType dtype) noexcept;
/// Inverse of `to_string`; throws std::invalid_argument for an unknown name.
DType parse_dtype(std::string_view name);
bool is_floating_point(DType dtype) noexcept;

}  // namespace gradsync
