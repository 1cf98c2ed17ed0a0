#pragma once

#include <cstddef>

#include "engine/comm/flight_recorder.hpp"
#include "engine/tensor/dtype.hpp"

namespace gradsync {

/// out[i] = a[i] OP b[i] for `count` elements: one hop of an all-reduce. Every backend that reduces
/// on the CPU (Gloo, the simulator) calls these functions, so equal orders give equal bits.
///
/// `out` may be `a` or `b`; other overlaps are not allowed. float16 and bfloat16 are widened to
/// float32, combined, and rounded to nearest even. For max and min a NaN in `a` or `b` gives NaN.
/// Integer sums wrap.
using ReduceFunction = void (*)(void* out, const void* a, const void* b, std::size_t count);

ReduceFunction reduce_function(ReduceOp op, DType dtype) noexcept;

}  // namespace gradsync
