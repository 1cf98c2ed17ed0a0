#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>

#include "gradsync/tensor/tensor.hpp"

namespace gradsync::torch_tests {

/// Arrays that both sides of the differential tests make for themselves, bit for bit: element i of
/// a stream is a function of the stream's number and i alone. tests/torch/formula.py is the same in
/// Python.

/// The number of the stream that belongs to a tuple such as (seed, sample, parameter).
std::uint64_t stream(std::span<const std::uint64_t> numbers) noexcept;
std::uint64_t stream(std::initializer_list<std::uint64_t> numbers) noexcept;

/// A new CPU tensor of values in [-1, 1), multiples of 2^-23 (kFloat32) or 2^-52 (kFloat64).
Tensor uniform(std::uint64_t stream_number, const Shape& shape, DType dtype);

}  // namespace gradsync::torch_tests
