#include "gradsync/data/randperm.hpp"

#include <fmt/format.h>

#include <numeric>
#include <utility>

#include "gradsync/core/error.hpp"

namespace gradsync {

std::vector<std::int64_t> randperm(std::int64_t n, Generator& generator, PytorchVersion version) {
  if (n < 0) {
    throw Error(ErrorCode::kMisuse, fmt::format("randperm: n must not be negative, got {}", n));
  }
  if (n >= kRandperm64Threshold && version >= PytorchVersion{2, 7}) {
    return randperm_64bit(n, generator);
  }
  return randperm_32bit(n, generator);
}

std::vector<std::int64_t> randperm_32bit(std::int64_t n, Generator& generator) {
  const auto size = static_cast<std::uint64_t>(n);
  std::vector<std::int64_t> permutation(size);
  std::iota(permutation.begin(), permutation.end(), std::int64_t{0});
  for (std::uint64_t i = 0; i + 1 < size; ++i) {
    const std::uint64_t offset = generator.random32() % (size - i);
    std::swap(permutation[i], permutation[i + offset]);
  }
  return permutation;
}

std::vector<std::int64_t> randperm_64bit(std::int64_t n, Generator& generator) {
  const auto size = static_cast<std::uint64_t>(n);
  std::vector<std::int64_t> permutation(size);
  for (std::uint64_t i = 0; i < size; ++i) {
    const std::uint64_t from = generator.random64() % (i + 1);
    permutation[i] = static_cast<std::int64_t>(i);
    permutation[i] = permutation[from];
    permutation[from] = static_cast<std::int64_t>(i);
  }
  return permutation;
}

}  // namespace gradsync
