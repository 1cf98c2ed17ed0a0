#pragma once

#include <cstdint>

#include "gradsync/tensor/dtype.hpp"

namespace gradsync {

/// The normalization inside a block. Batch norm has buffers (running_mean, running_var,
/// num_batches_tracked), which DDP broadcasts before each forward.
enum class BlockNorm { kLayerNorm, kBatchNorm };

/// The defaults are the handbook's: 27 tensors, 1,567,208 parameters, 6.0 MB.
struct TransformerOptions {
  std::int64_t vocab_size = 1000;
  std::int64_t d_model = 256;
  std::int64_t nhead = 4;
  std::int64_t num_layers = 2;
  std::int64_t dim_feedforward = 512;
  /// False: x = norm(x + f(x)) (post-norm, the handbook's). True: x = x + f(norm(x)).
  bool norm_first = false;
  BlockNorm norm = BlockNorm::kLayerNorm;
  /// dtype of parameters, buffers and activations: float32, float64, float16 or bfloat16. Each
  /// operation computes 16-bit types in float32 and rounds once.
  DType dtype = DType::kFloat32;
  bool operator==(const TransformerOptions&) const = default;
};

}  // namespace gradsync
