#include "gradsync/models/layers.hpp"

#include <cmath>

#include "gradsync/autograd/ops.hpp"

namespace gradsync {
namespace {

/// kaiming_uniform_ with a = sqrt(5), the default of torch.nn.Linear: gain sqrt(2 / (1 + a^2)),
/// times sqrt(3 / fan_in), is 1 / sqrt(fan_in).
double linear_bound(std::int64_t fan_in) {
  return 1 / std::sqrt(static_cast<double>(fan_in));
}

double xavier_bound(std::int64_t fan_in, std::int64_t fan_out) {
  return std::sqrt(6 / static_cast<double>(fan_in + fan_out));
}

}  // namespace

Linear::Linear(ParameterFactory& factory, const std::string& name, std::int64_t in,
               std::int64_t out, bool bias)
    : weight_(factory.uniform(name + ".weight", {out, in}, linear_bound(in))),
      bias_(bias ? factory.uniform(name + ".bias", {out}, linear_bound(in)) : nullptr) {}

Variable Linear::forward(Graph& graph, const Variable& x) const {
  return ops::linear(graph, x, graph.leaf(weight_), bias_ ? graph.leaf(bias_) : Variable{});
}

Embedding::Embedding(ParameterFactory& factory, const std::string& name, std::int64_t count,
                     std::int64_t width)
    : weight_(factory.normal(name + ".weight", {count, width})) {}

Variable Embedding::forward(Graph& graph, const Tensor& ids) const {
  return ops::embedding(graph, ids, graph.leaf(weight_));
}

LayerNorm::LayerNorm(ParameterFactory& factory, const std::string& name, std::int64_t width)
    : weight_(factory.constant(name + ".weight", {width}, 1)),
      bias_(factory.constant(name + ".bias", {width}, 0)) {}

Variable LayerNorm::forward(Graph& graph, const Variable& x) const {
  return ops::layer_norm(graph, x, graph.leaf(weight_), graph.leaf(bias_));
}

BatchNorm1d::BatchNorm1d(ParameterFactory& factory, const std::string& name, std::int64_t features)
    : weight_(factory.constant(name + ".weight", {features}, 1)),
      bias_(factory.constant(name + ".bias", {features}, 0)),
      running_mean_(factory.buffer(name + ".running_mean", {features}, 0)),
      running_var_(factory.buffer(name + ".running_var", {features}, 1)),
      num_batches_tracked_(factory.buffer(name + ".num_batches_tracked", {}, 0, DType::kInt64)) {}

Variable BatchNorm1d::forward(Graph& graph, const Variable& x) const {
  ops::BatchNormState state{running_mean_->data, running_var_->data, num_batches_tracked_->data};
  return ops::batch_norm(graph, x, graph.leaf(weight_), graph.leaf(bias_), state);
}

MultiHeadAttention::MultiHeadAttention(ParameterFactory& factory, const std::string& name,
                                       std::int64_t width, std::int64_t heads)
    : heads_(heads),
      in_proj_weight_(factory.uniform(name + ".in_proj_weight", {3 * width, width},
                                      xavier_bound(width, 3 * width))),
      in_proj_bias_(factory.constant(name + ".in_proj_bias", {3 * width}, 0)),
      out_proj_weight_(
          factory.uniform(name + ".out_proj.weight", {width, width}, linear_bound(width))),
      out_proj_bias_(factory.constant(name + ".out_proj.bias", {width}, 0)) {}

Variable MultiHeadAttention::forward(Graph& graph, const Variable& x) const {
  return ops::multi_head_attention(graph, x,
                                   {graph.leaf(in_proj_weight_), graph.leaf(in_proj_bias_),
                                    graph.leaf(out_proj_weight_), graph.leaf(out_proj_bias_)},
                                   heads_);
}

}  // namespace gradsync
