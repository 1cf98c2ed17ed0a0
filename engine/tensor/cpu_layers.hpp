#pragma once

#include "gradsync/tensor/kernels.hpp"

namespace gradsync {

/// The operations of a model's layers on the CPU, with matrix products by BLAS. float32 and float64
/// are computed in their own precision; float16 and bfloat16 in float32, rounding each result once.
Kernels& cpu_layers();

}  // namespace gradsync
