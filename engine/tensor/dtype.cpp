#include "gradsync/tensor/dtype.hpp"

#include <array>
#include <stdexcept>
#include <string>

namespace gradsync {
namespace {

struct Entry {
  DType dtype;
  std::string_view name;
};

constexpr std::array<Entry, 7> kEntries{{{DType::kFloat32, "float32"},
                                         {DType::kFloat64, "float64"},
                                         {DType::kFloat16, "float16"},
                                         {DType::kBFloat16, "bfloat16"},
                                         {DType::kInt32, "int32"},
                                         {DType::kInt64, "int64"},
                                         {DType::kUInt8, "uint8"}}};

}  // namespace

std::size_t element_size(DType dtype) noexcept {
  switch (dtype) {
    case DType::kFloat64:
    case DType::kInt64:
      return 8;
    case DType::kFloat32:
    case DType::kInt32:
      return 4;
    case DType::kFloat16:
    case DType::kBFloat16:
      return 2;
    case DType::kUInt8:
      return 1;
  }
  return 0;
}

std::string_view to_string(DType dtype) noexcept {
  for (const Entry& entry : kEntries) {
    if (entry.dtype == dtype) return entry.name;
  }
  return "unknown";
}

DType parse_dtype(std::string_view name) {
  std::string known;
  for (const Entry& entry : kEntries) {
    if (entry.name == name) return entry.dtype;
    known += (known.empty() ? "" : ", ") + std::string(entry.name);
  }
  throw std::invalid_argument("unknown dtype \"" + std::string(name) + "\"; known are " + known);
}

bool is_floating_point(DType dtype) noexcept {
  return dtype == DType::kFloat32 || dtype == DType::kFloat64 || dtype == DType::kFloat16 ||
         dtype == DType::kBFloat16;
}

}  // namespace gradsync
