#pragma once

#include <cstddef>

#include "gradsync/comm/flight_recorder.hpp"
#include "gradsync/tensor/dtype.hpp"

namespace gradsync {

/// out[i] = a[i] op b[i] for `elements` elements. `out` may equal `a` or `b`; otherwise the ranges
/// must not overlap. No alignment beyond the element's own is required. The signature matches
/// Gloo's reduction functions, so that every CPU backend uses the same ones.
using ReduceFunction = void (*)(void* out, const void* a, const void* b, std::size_t elements);

/// The reduction shared by all CPU backends, which makes sums bit-identical across them.
///
/// Arithmetic: one IEEE operation for float32 and float64; integers wrap around; float16 and
/// bfloat16 are widened to float32, added, and rounded back to nearest even (once per ring hop).
/// max and min are std::max(a, b) and std::min(a, b): `a` wins if the two compare equal or one of
/// them is NaN. Thread-safe.
ReduceFunction reduce_function(ReduceOp op, DType dtype);

}  // namespace gradsync
