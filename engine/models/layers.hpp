#pragma once

#include <cstdint>
#include <string>

#include "gradsync/autograd/graph.hpp"
#include "gradsync/autograd/parameter.hpp"
#include "gradsync/models/parameter_factory.hpp"

namespace gradsync {

/// Building blocks of models, named, initialized and registered as in torch.nn. `name` is the
/// prefix of the parameter names ("layers.0.attn"); parameters are registered with the factory in
/// PyTorch's order.

/// torch.nn.Linear: weight[out, in] and, unless disabled, bias[out], both uniform in +-1/sqrt(in).
class Linear {
 public:
  Linear(ParameterFactory& factory, const std::string& name, std::int64_t in, std::int64_t out,
         bool bias = true);
  Variable forward(Graph& graph, const Variable& x) const;

 private:
  ParameterPtr weight_, bias_;
};

/// torch.nn.Embedding: weight[count, width], normal.
class Embedding {
 public:
  Embedding(ParameterFactory& factory, const std::string& name, std::int64_t count,
            std::int64_t width);
  Variable forward(Graph& graph, const Tensor& ids) const;

 private:
  ParameterPtr weight_;
};

/// torch.nn.LayerNorm over the last dimension: weight 1, bias 0, eps 1e-5.
class LayerNorm {
 public:
  LayerNorm(ParameterFactory& factory, const std::string& name, std::int64_t width);
  Variable forward(Graph& graph, const Variable& x) const;

 private:
  ParameterPtr weight_, bias_;
};

/// torch.nn.BatchNorm1d in training mode over all rows of [..., features]: weight 1, bias 0, eps
/// 1e-5, momentum 0.1; buffers running_mean 0, running_var 1 and num_batches_tracked (int64).
class BatchNorm1d {
 public:
  BatchNorm1d(ParameterFactory& factory, const std::string& name, std::int64_t features);
  Variable forward(Graph& graph, const Variable& x) const;

 private:
  ParameterPtr weight_, bias_;
  BufferPtr running_mean_, running_var_, num_batches_tracked_;
};

/// torch.nn.MultiheadAttention (batch_first, no mask, no dropout) as self-attention:
/// in_proj_weight[3 width, width] Xavier-uniform, out_proj.weight initialized like a Linear, biases
/// 0.
class MultiHeadAttention {
 public:
  MultiHeadAttention(ParameterFactory& factory, const std::string& name, std::int64_t width,
                     std::int64_t heads);
  Variable forward(Graph& graph, const Variable& x) const;

 private:
  std::int64_t heads_;
  ParameterPtr in_proj_weight_, in_proj_bias_, out_proj_weight_, out_proj_bias_;
};

}  // namespace gradsync
