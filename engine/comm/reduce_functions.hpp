#pragma once

#include <cstddef>

#include "gradsync/comm/flight_recorder.hpp"
#include "gradsync/tensor/dtype.hpp"

namespace gradsync {

/// out[i] = a[i] op b[i] for `elements` elements. `out` may be `a` or `b`; otherwise they must not
/// overlap. No alignment is required beyond the element's own. The signature is that of Gloo's
/// reduction functions, so that every backend on the CPU uses the same ones.
using ReduceFunction = void (*)(void* out, const void* a, const void* b, std::size_t elements);

/// The reduction that all CPU backends share; with it a sum has the same bits in all of them.
///
/// Arithmetic: float32 and float64 one IEEE operation; integers wrap around; float16 and bfloat16
/// are widened to float32, added there, and rounded back to nearest even (once a hop of the ring).
/// max and min are std::max(a, b) and std::min(a, b): `a` wins where the two compare equal or where
/// one of them is NaN. Thread-safe.
ReduceFunction reduce_function(ReduceOp op, DType dtype);

}  // namespace gradsync
