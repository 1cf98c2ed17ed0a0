#include "gradsync/backends/cuda/cuda_layers.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "gradsync/backends/cuda/cuda_device.hpp"
#include "gradsync/backends/cuda/cuda_layer_kernels.hpp"
#include "gradsync/core/error.hpp"
#include "gradsync/tensor/in_float32.hpp"

namespace gradsync {
namespace {

std::int64_t columns_of(const Tensor& tensor) {
  return tensor.shape().back();
}
std::int64_t rows_of(const Tensor& tensor) {
  return columns_of(tensor) == 0 ? 0 : tensor.numel() / columns_of(tensor);
}

const std::int64_t* indices(const Tensor& tensor) {
  return reinterpret_cast<const std::int64_t*>(tensor.data());
}

const std::byte* element(const Tensor& tensor, std::int64_t index) {
  return tensor.data() + index * static_cast<std::int64_t>(element_size(tensor.dtype()));
}

/// The memory layout of qkv[batch, seq, 3 d], context[batch, seq, d] and probabilities[batch,
/// heads, seq, seq]. Attention is a small product for each head of each sequence. The heads of one
/// sequence are equidistant in memory, and so are the sequences of one head, so either can be one
/// batched product. The larger of the two is the batch, which takes the fewest calls.
struct AttentionShape {
  /// Distance in elements between consecutive sequences, and between consecutive heads.
  struct Distances {
    std::int64_t sequence, head;
  };

  AttentionShape(const Tensor& qkv, std::int64_t head_count)
      : batch(qkv.shape().at(0)),
        seq(qkv.shape().at(1)),
        width(qkv.shape().at(2) / 3),
        heads(head_count),
        head_width(width / head_count),
        calls(std::min(batch, heads)),
        per_call(std::max(batch, heads)) {}

  /// part 0, 1, 2: queries, keys, values. `call` is the index of the batched call.
  MatrixOperand of_qkv(const Tensor& qkv, std::int64_t call, std::int64_t part,
                       bool transposed = false) const {
    return operand(qkv, part * width, 3 * width, in_qkv(), call, transposed);
  }
  MatrixOperand of_context(const Tensor& context, std::int64_t call,
                           bool transposed = false) const {
    return operand(context, 0, width, in_context(), call, transposed);
  }
  MatrixOperand of_probabilities(const Tensor& probabilities, std::int64_t call,
                                 bool transposed = false) const {
    return operand(probabilities, 0, seq, in_probabilities(), call, transposed);
  }

  std::int64_t batch, seq, width, heads, head_width, calls, per_call;

 private:
  Distances in_qkv() const { return {seq * 3 * width, head_width}; }
  Distances in_context() const { return {seq * width, head_width}; }
  Distances in_probabilities() const { return {heads * seq * seq, seq * seq}; }

  MatrixOperand operand(const Tensor& tensor, std::int64_t begin, std::int64_t stride,
                        const Distances& distances, std::int64_t call, bool transposed) const {
    const bool takes_heads = calls == batch;  // each call takes all heads of one sequence
    return {element(tensor, begin + call * (takes_heads ? distances.sequence : distances.head)),
            stride, takes_heads ? distances.head : distances.sequence, transposed};
  }
};

}  // namespace

CudaLayers::CudaLayers(CudaDevice& device, CublasApi& products)
    : api_(device.api()),
      stream_(device.compute_stream()),
      products_(products),
      bad_index_(static_cast<std::int64_t*>(api_.allocate_pinned(sizeof(std::int64_t)))) {
  if (bad_index_ == nullptr) {
    throw Error(ErrorCode::kInternal, "no page-locked host memory is to be had");
  }
  *bad_index_ = 0;
}

CudaLayers::~CudaLayers() {
  api_.release_pinned(bad_index_);
}

void CudaLayers::check_indices() {
  const std::int64_t bad = *const_cast<volatile std::int64_t*>(bad_index_);
  if (bad == 0) return;
  *bad_index_ = 0;
  throw Error(ErrorCode::kMisuse,
              "embedding or cross_entropy: the index at position " + std::to_string(bad - 1) +
                  " is outside the table; is vocab_size large enough for the data?");
}

/// Writes the result to `into` (const only because of MatrixOperand's pointer type).
void CudaLayers::multiply(MatrixProduct product, const MatrixOperand& into) {
  product.c = const_cast<void*>(into.data);
  product.c_stride = into.stride;
  product.c_batch_stride = into.batch_stride;
  products_.multiply(product, stream_);
}

void CudaLayers::linear_forward(Tensor& out, const Tensor& x, const Tensor& weight,
                                const Tensor& bias) {
  if (is_16_bit(out)) {
    return call_in_float32(*this, &Kernels::linear_forward, out, x, weight, bias);
  }
  const std::int64_t rows = rows_of(x), in = columns_of(x), width = columns_of(out);
  if (bias.defined()) {
    cuda::fill_rows(stream_, out.dtype(), out.data(), bias.data(), rows, width);
  }
  products_.multiply({.dtype = out.dtype(),
                      .m = rows,
                      .n = width,
                      .k = in,
                      .beta = bias.defined() ? 1.0 : 0.0,
                      .a = {x.data(), in},
                      .b = {weight.data(), in, 0, true},
                      .c = out.data(),
                      .c_stride = width},
                     stream_);
}

void CudaLayers::linear_backward(Tensor& grad_x, Tensor& grad_weight, Tensor& grad_bias,
                                 const Tensor& grad_out, const Tensor& x, const Tensor& weight) {
  if (is_16_bit(grad_out)) {
    return call_in_float32(*this, &Kernels::linear_backward, grad_x, grad_weight, grad_bias,
                           grad_out, x, weight);
  }
  const DType dtype = grad_out.dtype();
  const std::int64_t rows = rows_of(grad_out), width = columns_of(grad_out);
  if (grad_x.defined()) {
    const std::int64_t in = columns_of(grad_x);
    products_.multiply({.dtype = dtype,
                        .m = rows,
                        .n = in,
                        .k = width,
                        .a = {grad_out.data(), width},
                        .b = {weight.data(), in},
                        .c = grad_x.data(),
                        .c_stride = in},
                       stream_);
  }
  if (grad_weight.defined()) {
    const std::int64_t in = columns_of(grad_weight);
    products_.multiply({.dtype = dtype,
                        .m = width,
                        .n = in,
                        .k = rows,
                        .a = {grad_out.data(), width, 0, true},
                        .b = {x.data(), in},
                        .c = grad_weight.data(),
                        .c_stride = in},
                       stream_);
  }
  if (grad_bias.defined()) {
    cuda::sum_rows(stream_, dtype, grad_bias.data(), grad_out.data(), rows, width);
  }
}

void CudaLayers::embedding_forward(Tensor& out, const Tensor& weight, const Tensor& ids) {
  if (is_16_bit(out)) return call_in_float32(*this, &Kernels::embedding_forward, out, weight, ids);
  cuda::gather_rows(stream_, out.dtype(), out.data(), weight.data(), indices(ids), ids.numel(),
                    columns_of(weight), weight.shape().at(0), bad_index_);
}

void CudaLayers::embedding_backward(Tensor& grad_weight, const Tensor& grad_out,
                                    const Tensor& ids) {
  if (is_16_bit(grad_weight)) {
    return call_in_float32(*this, &Kernels::embedding_backward, grad_weight, grad_out, ids);
  }
  cuda::scatter_add_rows(stream_, grad_weight.dtype(), grad_weight.data(), grad_out.data(),
                         indices(ids), ids.numel(), columns_of(grad_weight),
                         grad_weight.shape().at(0));
}

void CudaLayers::attention_forward(Tensor& context, Tensor& probabilities, const Tensor& qkv,
                                   std::int64_t heads) {
  if (is_16_bit(context)) {
    return call_in_float32(*this, &Kernels::attention_forward, context, probabilities, qkv, heads);
  }
  const DType dtype = qkv.dtype();
  const AttentionShape s(qkv, heads);
  for (std::int64_t call = 0; call < s.calls; ++call) {
    multiply(MatrixProduct{.dtype = dtype,
                           .m = s.seq,
                           .n = s.seq,
                           .k = s.head_width,
                           .batch = s.per_call,
                           .alpha = 1 / std::sqrt(static_cast<double>(s.head_width)),
                           .a = s.of_qkv(qkv, call, 0),
                           .b = s.of_qkv(qkv, call, 1, true)},
             s.of_probabilities(probabilities, call));
  }
  cuda::softmax_rows(stream_, dtype, probabilities.data(), s.batch * heads * s.seq, s.seq);
  for (std::int64_t call = 0; call < s.calls; ++call) {
    multiply(MatrixProduct{.dtype = dtype,
                           .m = s.seq,
                           .n = s.head_width,
                           .k = s.seq,
                           .batch = s.per_call,
                           .a = s.of_probabilities(probabilities, call),
                           .b = s.of_qkv(qkv, call, 2)},
             s.of_context(context, call));
  }
}

void CudaLayers::attention_backward(Tensor& grad_qkv, const Tensor& grad_context, const Tensor& qkv,
                                    const Tensor& probabilities, std::int64_t heads) {
  if (is_16_bit(grad_qkv)) {
    return call_in_float32(*this, &Kernels::attention_backward, grad_qkv, grad_context, qkv,
                           probabilities, heads);
  }
  const DType dtype = qkv.dtype();
  const AttentionShape s(qkv, heads);
  Tensor grad_scores = probabilities.empty_like();
  const auto into_qkv = [&](std::int64_t call, std::int64_t part, const MatrixOperand& a,
                            const MatrixOperand& other) {
    multiply(MatrixProduct{.dtype = dtype,
                           .m = s.seq,
                           .n = s.head_width,
                           .k = s.seq,
                           .batch = s.per_call,
                           .a = a,
                           .b = other},
             s.of_qkv(grad_qkv, call, part));
  };
  for (std::int64_t call = 0; call < s.calls; ++call) {
    into_qkv(call, 2, s.of_probabilities(probabilities, call, true),
             s.of_context(grad_context, call));
    multiply(MatrixProduct{.dtype = dtype,
                           .m = s.seq,
                           .n = s.seq,
                           .k = s.head_width,
                           .batch = s.per_call,
                           .a = s.of_context(grad_context, call),
                           .b = s.of_qkv(qkv, call, 2, true)},
             s.of_probabilities(grad_scores, call));
  }
  cuda::softmax_rows_backward(stream_, dtype, grad_scores.data(), probabilities.data(),
                              1 / std::sqrt(static_cast<double>(s.head_width)),
                              s.batch * heads * s.seq, s.seq);
  for (std::int64_t call = 0; call < s.calls; ++call) {
    into_qkv(call, 0, s.of_probabilities(grad_scores, call), s.of_qkv(qkv, call, 1));
    into_qkv(call, 1, s.of_probabilities(grad_scores, call, true), s.of_qkv(qkv, call, 0));
  }
}

void CudaLayers::layer_norm_forward(Tensor& out, Tensor& mean, Tensor& inverse_deviation,
                                    const Tensor& x, const Tensor& weight, const Tensor& bias,
                                    double eps) {
  if (is_16_bit(out)) {
    return call_in_float32(*this, &Kernels::layer_norm_forward, out, mean, inverse_deviation, x,
                           weight, bias, eps);
  }
  cuda::layer_norm(stream_, out.dtype(), out.data(), mean.data(), inverse_deviation.data(),
                   x.data(), weight.data(), bias.data(), eps, rows_of(x), columns_of(x));
}

void CudaLayers::layer_norm_backward(Tensor& grad_x, Tensor& grad_weight, Tensor& grad_bias,
                                     const Tensor& grad_out, const Tensor& x, const Tensor& mean,
                                     const Tensor& inverse_deviation, const Tensor& weight) {
  if (is_16_bit(grad_out)) {
    return call_in_float32(*this, &Kernels::layer_norm_backward, grad_x, grad_weight, grad_bias,
                           grad_out, x, mean, inverse_deviation, weight);
  }
  cuda::layer_norm_backward(stream_, grad_out.dtype(), grad_x.data(), grad_weight.data(),
                            grad_bias.data(), grad_out.data(), x.data(), mean.data(),
                            inverse_deviation.data(), weight.data(), rows_of(x), columns_of(x));
}

void CudaLayers::batch_norm_forward(Tensor& out, Tensor& mean, Tensor& inverse_deviation,
                                    Tensor& running_mean, Tensor& running_variance, const Tensor& x,
                                    const Tensor& weight, const Tensor& bias, double momentum,
                                    double eps) {
  if (is_16_bit(out)) {
    return call_in_float32(*this, &Kernels::batch_norm_forward, out, mean, inverse_deviation,
                           running_mean, running_variance, x, weight, bias, momentum, eps);
  }
  cuda::batch_norm(stream_, out.dtype(), out.data(), mean.data(), inverse_deviation.data(),
                   running_mean.data(), running_variance.data(), x.data(), weight.data(),
                   bias.data(), momentum, eps, rows_of(x), columns_of(x));
}

void CudaLayers::batch_norm_backward(Tensor& grad_x, Tensor& grad_weight, Tensor& grad_bias,
                                     const Tensor& grad_out, const Tensor& x, const Tensor& mean,
                                     const Tensor& inverse_deviation, const Tensor& weight) {
  if (is_16_bit(grad_out)) {
    return call_in_float32(*this, &Kernels::batch_norm_backward, grad_x, grad_weight, grad_bias,
                           grad_out, x, mean, inverse_deviation, weight);
  }
  cuda::batch_norm_backward(stream_, grad_out.dtype(), grad_x.data(), grad_weight.data(),
                            grad_bias.data(), grad_out.data(), x.data(), mean.data(),
                            inverse_deviation.data(), weight.data(), rows_of(x), columns_of(x));
}

void CudaLayers::relu_forward(Tensor& out, const Tensor& x) {
  if (is_16_bit(out)) return call_in_float32(*this, &Kernels::relu_forward, out, x);
  cuda::relu(stream_, out.dtype(), out.data(), x.data(), x.numel());
}

void CudaLayers::relu_backward(Tensor& grad_x, const Tensor& grad_out, const Tensor& out) {
  if (is_16_bit(grad_x)) {
    return call_in_float32(*this, &Kernels::relu_backward, grad_x, grad_out, out);
  }
  cuda::relu_backward(stream_, out.dtype(), grad_x.data(), grad_out.data(), out.data(),
                      out.numel());
}

void CudaLayers::add_forward(Tensor& out, const Tensor& a, const Tensor& b) {
  if (is_16_bit(out)) return call_in_float32(*this, &Kernels::add_forward, out, a, b);
  cuda::add_tensors(stream_, out.dtype(), out.data(), a.data(), b.data(), out.numel());
}

void CudaLayers::sum_forward(Tensor& out, const Tensor& x) {
  if (is_16_bit(out)) return call_in_float32(*this, &Kernels::sum_forward, out, x);
  cuda::sum(stream_, out.dtype(), out.data(), x.data(), x.numel());
}

void CudaLayers::sum_backward(Tensor& grad_x, const Tensor& grad_out) {
  if (is_16_bit(grad_x)) return call_in_float32(*this, &Kernels::sum_backward, grad_x, grad_out);
  cuda::fill_from(stream_, grad_x.dtype(), grad_x.data(), grad_out.data(), grad_x.numel());
}

void CudaLayers::cross_entropy_forward(Tensor& loss, Tensor& log_normalizer, const Tensor& logits,
                                       const Tensor& targets) {
  if (is_16_bit(loss)) {
    return call_in_float32(*this, &Kernels::cross_entropy_forward, loss, log_normalizer, logits,
                           targets);
  }
  cuda::cross_entropy(stream_, logits.dtype(), loss.data(), log_normalizer.data(), logits.data(),
                      indices(targets), rows_of(logits), columns_of(logits), bad_index_);
}

void CudaLayers::cross_entropy_backward(Tensor& grad_logits, const Tensor& grad_loss,
                                        const Tensor& logits, const Tensor& log_normalizer,
                                        const Tensor& targets) {
  if (is_16_bit(grad_logits)) {
    return call_in_float32(*this, &Kernels::cross_entropy_backward, grad_logits, grad_loss, logits,
                           log_normalizer, targets);
  }
  cuda::cross_entropy_backward(stream_, logits.dtype(), grad_logits.data(), grad_loss.data(),
                               logits.data(), log_normalizer.data(), indices(targets),
                               rows_of(logits), columns_of(logits));
}

}  // namespace gradsync
