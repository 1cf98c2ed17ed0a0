#pragma once

#include <cstdint>
#include <vector>

#include "gradsync/core/generator.hpp"
#include "gradsync/core/pytorch_version.hpp"

namespace gradsync {

/// From this size on, PyTorch 2.7 draws 64 bits per step.
inline constexpr std::int64_t kRandperm64Threshold = 0xffffffffLL / 20;

/// A random permutation of 0..n-1: torch.randperm on the CPU. Throws Error(kMisuse) for n < 0.
/// Versions before 2.7 shuffle every size with 32-bit draws.
std::vector<std::int64_t> randperm(std::int64_t n, Generator& generator,
                                   PytorchVersion version = {});

/// The two algorithms: Fisher-Yates from the front with 32-bit draws (n - 1 of them), and
/// "inside-out" with 64-bit draws (n of them). Both reduce a draw with a plain modulo.
std::vector<std::int64_t> randperm_32bit(std::int64_t n, Generator& generator);
std::vector<std::int64_t> randperm_64bit(std::int64_t n, Generator& generator);

}  // namespace gradsync
