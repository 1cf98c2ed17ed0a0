#pragma once

#include "engine/tensor/kernels.hpp"

namespace gradsync {

/// The operations of a network on the CPU, for float32 and float64; products by BLAS.
Kernels& cpu_network();

}  // namespace gradsync
