#include "gradsync/tensor/cpu_layers.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <type_traits>

#include "gradsync/core/error.hpp"
#include "gradsync/tensor/cpu_blas.hpp"
#include "gradsync/tensor/cpu_layer_kernels.hpp"
#include "gradsync/tensor/element.hpp"
#include "gradsync/tensor/in_float32.hpp"

namespace gradsync {
namespace {

using cpu::Matrix;
using cpu::Op;

std::int64_t columns_of(const Tensor& tensor) {
  return tensor.shape().back();
}
std::int64_t rows_of(const Tensor& tensor) {
  return columns_of(tensor) == 0 ? 0 : tensor.numel() / columns_of(tensor);
}

template <typename Function>
void with_type(const Tensor& tensor, const char* operation, Function&& function) {
  switch (tensor.dtype()) {
    case DType::kFloat32:
      return function(float{});
    case DType::kFloat64:
      return function(double{});
    default:
      throw Error(ErrorCode::kInternal, std::string(operation) +
                                            " computes in float32 and float64" + ", not in " +
                                            std::string(to_string(tensor.dtype())));
  }
}

/// Returns the indices if all are in [0, limit); otherwise throws an error with the first one that
/// is not.
const std::int64_t* checked_indices(const Tensor& indices, std::int64_t limit,
                                    const char* operation) {
  const auto values = indices.span<std::int64_t>();
  const auto bad = std::find_if(values.begin(), values.end(), [limit](std::int64_t index) {
    return index < 0 || index >= limit;
  });
  if (bad != values.end()) {
    throw Error(ErrorCode::kMisuse, std::string(operation) + ": index " + std::to_string(*bad) +
                                        " at position " + std::to_string(bad - values.begin()) +
                                        " is not below " + std::to_string(limit) +
                                        "; is vocab_size large enough for the data?");
  }
  return values.data();
}

/// The memory layout of the heads in qkv[batch, seq, 3 d] and context[batch, seq, d]: each head is
/// a seq x (d / heads) matrix, interleaved with the other heads. Heads are numbered over the whole
/// batch.
struct AttentionShape {
  AttentionShape(const Tensor& qkv, std::int64_t head_count)
      : seq(qkv.shape().at(1)),
        width(qkv.shape().at(2) / 3),
        heads(head_count),
        head_width(width / head_count),
        count(qkv.shape().at(0) * head_count) {}

  template <typename T>
  Matrix<T> query(T* qkv, std::int64_t head) const {
    return {qkv + head / heads * seq * 3 * width + head % heads * head_width, 3 * width};
  }
  template <typename T>
  Matrix<T> key(T* qkv, std::int64_t head) const {
    return {query(qkv, head).data + width, 3 * width};
  }
  template <typename T>
  Matrix<T> value(T* qkv, std::int64_t head) const {
    return {query(qkv, head).data + 2 * width, 3 * width};
  }
  template <typename T>
  Matrix<T> context(T* context, std::int64_t head) const {
    return {context + head / heads * seq * width + head % heads * head_width, width};
  }
  template <typename T>
  Matrix<T> probabilities(T* probabilities, std::int64_t head) const {
    return {probabilities + head * seq * seq, seq};
  }

  std::int64_t seq, width, heads, head_width, count;
};

class CpuLayers final : public Kernels {
 public:
  CpuLayers() { cpu::use_one_blas_thread(); }

  void linear_forward(Tensor& out, const Tensor& x, const Tensor& weight,
                      const Tensor& bias) override {
    if (is_16_bit(out)) {
      return in_float32(&Kernels::linear_forward, out, x, weight, bias);
    }
    with_type(out, "linear", [&](auto tag) {
      using T = decltype(tag);
      const std::int64_t rows = rows_of(x), n = weight.shape().at(0), k = weight.shape().at(1);
      // Start from the bias, so that the product adds to it in the same pass.
      if (bias.defined()) cpu::fill_rows(elements<T>(out), elements<T>(bias), rows, n);
      cpu::gemm(Op::kNone, Op::kTranspose, rows, n, k, T{1}, {elements<const T>(x), k},
                {elements<const T>(weight), k}, bias.defined() ? T{1} : T{0},
                {elements<T>(out), n});
    });
  }

  void linear_backward(Tensor& grad_x, Tensor& grad_weight, Tensor& grad_bias,
                       const Tensor& grad_out, const Tensor& x, const Tensor& weight) override {
    if (is_16_bit(grad_out)) {
      return in_float32(&Kernels::linear_backward, grad_x, grad_weight, grad_bias, grad_out, x,
                        weight);
    }
    with_type(grad_out, "linear", [&](auto tag) {
      using T = decltype(tag);
      const std::int64_t rows = rows_of(x), n = weight.shape().at(0), k = weight.shape().at(1);
      const T* const dy = elements<const T>(grad_out);
      if (grad_bias.defined()) cpu::sum_rows(elements<T>(grad_bias), dy, rows, n);
      if (grad_weight.defined()) {
        cpu::gemm(Op::kTranspose, Op::kNone, n, k, rows, T{1}, {dy, n}, {elements<const T>(x), k},
                  T{0}, {elements<T>(grad_weight), k});
      }
      if (grad_x.defined()) {
        cpu::gemm(Op::kNone, Op::kNone, rows, k, n, T{1}, {dy, n}, {elements<const T>(weight), k},
                  T{0}, {elements<T>(grad_x), k});
      }
    });
  }

  void embedding_forward(Tensor& out, const Tensor& weight, const Tensor& ids) override {
    if (is_16_bit(out)) {
      return in_float32(&Kernels::embedding_forward, out, weight, ids);
    }
    with_type(out, "embedding", [&](auto tag) {
      using T = decltype(tag);
      const std::int64_t width = columns_of(weight);
      const std::int64_t* const rows = checked_indices(ids, weight.shape().at(0), "embedding");
      for (std::int64_t i = 0; i < ids.numel(); ++i) {
        std::copy_n(elements<const T>(weight) + rows[i] * width, width,
                    elements<T>(out) + i * width);
      }
    });
  }

  void embedding_backward(Tensor& grad_weight, const Tensor& grad_out, const Tensor& ids) override {
    if (is_16_bit(grad_weight)) {
      return in_float32(&Kernels::embedding_backward, grad_weight, grad_out, ids);
    }
    with_type(grad_weight, "embedding", [&](auto tag) {
      using T = decltype(tag);
      std::fill_n(elements<T>(grad_weight), grad_weight.numel(), T{0});
      cpu::scatter_add_rows(elements<T>(grad_weight), elements<const T>(grad_out),
                            ids.span<std::int64_t>().data(), ids.numel(), columns_of(grad_weight));
    });
  }

  void attention_forward(Tensor& context, Tensor& probabilities, const Tensor& qkv,
                         std::int64_t heads) override {
    if (is_16_bit(context)) {
      return in_float32(&Kernels::attention_forward, context, probabilities, qkv, heads);
    }
    with_type(context, "attention", [&](auto tag) {
      using T = decltype(tag);
      const AttentionShape s(qkv, heads);
      const T factor = 1 / std::sqrt(static_cast<T>(s.head_width));
      const T* const in = elements<const T>(qkv);
      for (std::int64_t head = 0; head < s.count; ++head) {
        const Matrix<T> p = s.probabilities(elements<T>(probabilities), head);
        cpu::gemm(Op::kNone, Op::kTranspose, s.seq, s.seq, s.head_width, factor, s.query(in, head),
                  s.key(in, head), T{0}, p);
        cpu::softmax_rows(p.data, s.seq, s.seq);
        cpu::gemm(Op::kNone, Op::kNone, s.seq, s.head_width, s.seq, T{1}, {p.data, p.stride},
                  s.value(in, head), T{0}, s.context(elements<T>(context), head));
      }
    });
  }

  void attention_backward(Tensor& grad_qkv, const Tensor& grad_context, const Tensor& qkv,
                          const Tensor& probabilities, std::int64_t heads) override {
    if (is_16_bit(grad_qkv)) {
      return in_float32(&Kernels::attention_backward, grad_qkv, grad_context, qkv, probabilities,
                        heads);
    }
    with_type(grad_qkv, "attention", [&](auto tag) {
      using T = decltype(tag);
      const AttentionShape s(qkv, heads);
      const T factor = 1 / std::sqrt(static_cast<T>(s.head_width));
      const T* const in = elements<const T>(qkv);
      T* const grad = elements<T>(grad_qkv);
      const Tensor scratch = Tensor::empty({s.seq, s.seq}, qkv.dtype(), qkv.device());
      T* const grad_scores = elements<T>(scratch);
      for (std::int64_t head = 0; head < s.count; ++head) {
        const auto p = s.probabilities(elements<const T>(probabilities), head);
        const auto grad_head = s.context(elements<const T>(grad_context), head);
        cpu::gemm(Op::kTranspose, Op::kNone, s.seq, s.head_width, s.seq, T{1}, p, grad_head, T{0},
                  s.value(grad, head));
        cpu::gemm(Op::kNone, Op::kTranspose, s.seq, s.seq, s.head_width, T{1}, grad_head,
                  s.value(in, head), T{0}, {grad_scores, s.seq});
        cpu::softmax_rows_backward(grad_scores, p.data, factor, s.seq, s.seq);
        cpu::gemm(Op::kNone, Op::kNone, s.seq, s.head_width, s.seq, T{1}, {grad_scores, s.seq},
                  s.key(in, head), T{0}, s.query(grad, head));
        cpu::gemm(Op::kTranspose, Op::kNone, s.seq, s.head_width, s.seq, T{1}, {grad_scores, s.seq},
                  s.query(in, head), T{0}, s.key(grad, head));
      }
    });
  }

  void layer_norm_forward(Tensor& out, Tensor& mean, Tensor& inverse_deviation, const Tensor& x,
                          const Tensor& weight, const Tensor& bias, double eps) override {
    if (is_16_bit(out)) {
      return in_float32(&Kernels::layer_norm_forward, out, mean, inverse_deviation, x, weight, bias,
                        eps);
    }
    with_type(out, "layer_norm", [&](auto tag) {
      using T = decltype(tag);
      cpu::layer_norm(elements<T>(out), elements<T>(mean), elements<T>(inverse_deviation),
                      elements<const T>(x), elements<const T>(weight), elements<const T>(bias),
                      static_cast<T>(eps), rows_of(x), columns_of(x));
    });
  }

  void layer_norm_backward(Tensor& grad_x, Tensor& grad_weight, Tensor& grad_bias,
                           const Tensor& grad_out, const Tensor& x, const Tensor& mean,
                           const Tensor& inverse_deviation, const Tensor& weight) override {
    if (is_16_bit(grad_out)) {
      return in_float32(&Kernels::layer_norm_backward, grad_x, grad_weight, grad_bias, grad_out, x,
                        mean, inverse_deviation, weight);
    }
    with_type(grad_out, "layer_norm", [&](auto tag) {
      using T = decltype(tag);
      cpu::layer_norm_backward(elements<T>(grad_x), elements<T>(grad_weight),
                               elements<T>(grad_bias), elements<const T>(grad_out),
                               elements<const T>(x), elements<const T>(mean),
                               elements<const T>(inverse_deviation), elements<const T>(weight),
                               rows_of(x), columns_of(x));
    });
  }

  void batch_norm_forward(Tensor& out, Tensor& mean, Tensor& inverse_deviation,
                          Tensor& running_mean, Tensor& running_variance, const Tensor& x,
                          const Tensor& weight, const Tensor& bias, double momentum,
                          double eps) override {
    if (is_16_bit(out)) {
      return in_float32(&Kernels::batch_norm_forward, out, mean, inverse_deviation, running_mean,
                        running_variance, x, weight, bias, momentum, eps);
    }
    with_type(out, "batch_norm", [&](auto tag) {
      using T = decltype(tag);
      cpu::batch_norm(elements<T>(out), elements<T>(mean), elements<T>(inverse_deviation),
                      elements<T>(running_mean), elements<T>(running_variance),
                      elements<const T>(x), elements<const T>(weight), elements<const T>(bias),
                      static_cast<T>(momentum), static_cast<T>(eps), rows_of(x), columns_of(x));
    });
  }

  void batch_norm_backward(Tensor& grad_x, Tensor& grad_weight, Tensor& grad_bias,
                           const Tensor& grad_out, const Tensor& x, const Tensor& mean,
                           const Tensor& inverse_deviation, const Tensor& weight) override {
    if (is_16_bit(grad_out)) {
      return in_float32(&Kernels::batch_norm_backward, grad_x, grad_weight, grad_bias, grad_out, x,
                        mean, inverse_deviation, weight);
    }
    with_type(grad_out, "batch_norm", [&](auto tag) {
      using T = decltype(tag);
      cpu::batch_norm_backward(elements<T>(grad_x), elements<T>(grad_weight),
                               elements<T>(grad_bias), elements<const T>(grad_out),
                               elements<const T>(x), elements<const T>(mean),
                               elements<const T>(inverse_deviation), elements<const T>(weight),
                               rows_of(x), columns_of(x));
    });
  }

  void relu_forward(Tensor& out, const Tensor& x) override {
    if (is_16_bit(out)) {
      return in_float32(&Kernels::relu_forward, out, x);
    }
    with_type(out, "relu", [&](auto tag) {
      using T = decltype(tag);
      cpu::relu(elements<T>(out), elements<const T>(x), x.numel());
    });
  }

  void relu_backward(Tensor& grad_x, const Tensor& grad_out, const Tensor& out) override {
    if (is_16_bit(grad_x)) {
      return in_float32(&Kernels::relu_backward, grad_x, grad_out, out);
    }
    with_type(grad_x, "relu", [&](auto tag) {
      using T = decltype(tag);
      cpu::relu_backward(elements<T>(grad_x), elements<const T>(grad_out), elements<const T>(out),
                         out.numel());
    });
  }

  void add_forward(Tensor& out, const Tensor& a, const Tensor& b) override {
    if (is_16_bit(out)) {
      return in_float32(&Kernels::add_forward, out, a, b);
    }
    with_type(out, "add", [&](auto tag) {
      using T = decltype(tag);
      cpu::add_tensors(elements<T>(out), elements<const T>(a), elements<const T>(b), out.numel());
    });
  }

  void sum_forward(Tensor& out, const Tensor& x) override {
    if (is_16_bit(out)) {
      return in_float32(&Kernels::sum_forward, out, x);
    }
    with_type(out, "sum", [&](auto tag) {
      using T = decltype(tag);
      *elements<T>(out) = cpu::sum(elements<const T>(x), x.numel());
    });
  }

  void sum_backward(Tensor& grad_x, const Tensor& grad_out) override {
    if (is_16_bit(grad_x)) {
      return in_float32(&Kernels::sum_backward, grad_x, grad_out);
    }
    with_type(grad_x, "sum", [&](auto tag) {
      using T = decltype(tag);
      std::fill_n(elements<T>(grad_x), grad_x.numel(), *elements<const T>(grad_out));
    });
  }

  void cross_entropy_forward(Tensor& loss, Tensor& log_normalizer, const Tensor& logits,
                             const Tensor& targets) override {
    if (is_16_bit(loss)) {
      return in_float32(&Kernels::cross_entropy_forward, loss, log_normalizer, logits, targets);
    }
    with_type(logits, "cross_entropy", [&](auto tag) {
      using T = decltype(tag);
      const std::int64_t rows = rows_of(logits), classes = columns_of(logits);
      const std::int64_t* const target = checked_indices(targets, classes, "cross_entropy");
      T* const normalizer = elements<T>(log_normalizer);
      cpu::log_sum_exp_rows(normalizer, elements<const T>(logits), rows, classes);
      double sum = 0;
      for (std::int64_t row = 0; row < rows; ++row) {
        sum += static_cast<double>(normalizer[row] -
                                   elements<const T>(logits)[row * classes + target[row]]);
      }
      *elements<T>(loss) = static_cast<T>(sum / static_cast<double>(rows));
    });
  }

  void cross_entropy_backward(Tensor& grad_logits, const Tensor& grad_loss, const Tensor& logits,
                              const Tensor& log_normalizer, const Tensor& targets) override {
    if (is_16_bit(grad_logits)) {
      return in_float32(&Kernels::cross_entropy_backward, grad_logits, grad_loss, logits,
                        log_normalizer, targets);
    }
    with_type(logits, "cross_entropy", [&](auto tag) {
      using T = decltype(tag);
      const std::int64_t rows = rows_of(logits), classes = columns_of(logits);
      cpu::cross_entropy_rows_backward(
          elements<T>(grad_logits), elements<const T>(logits), elements<const T>(log_normalizer),
          targets.span<std::int64_t>().data(), *elements<const T>(grad_loss) / static_cast<T>(rows),
          rows, classes);
    });
  }

 private:
  template <typename... Parameters>
  void in_float32(void (Kernels::*kernel)(Parameters...),
                  std::type_identity_t<Parameters>... arguments) {
    call_in_float32<Parameters...>(*this, kernel, arguments...);
  }
};

}  // namespace

Kernels& cpu_layers() {
  static CpuLayers layers;
  return layers;
}

}  // namespace gradsync
