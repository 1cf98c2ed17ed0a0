#pragma once

#include "gradsync/backends/cuda/cublas_api.hpp"
#include "gradsync/backends/cuda/cuda_api.hpp"
#include "gradsync/tensor/kernels.hpp"

namespace gradsync {

class CudaDevice;

/// The operations of a model's layers on CUDA: matrix products by cuBLAS, the rest by our own
/// kernels (kernels/layers.cu), all on the device's compute stream. float32 and float64 are
/// computed in their own precision; the 16-bit types in float32, rounding each result once.
class CudaLayers final : public Kernels {
 public:
  CudaLayers(CudaDevice& device, CublasApi& products);
  ~CudaLayers() override;
  CudaLayers(const CudaLayers&) = delete;
  CudaLayers& operator=(const CudaLayers&) = delete;

  /// Throws Error(kMisuse) if an embedding index or a target was out of range. The GPU detects this
  /// asynchronously, so call it after the host has waited for the GPU.
  void check_indices();

  void linear_forward(Tensor& out, const Tensor& x, const Tensor& weight,
                      const Tensor& bias) override;
  void linear_backward(Tensor& grad_x, Tensor& grad_weight, Tensor& grad_bias,
                       const Tensor& grad_out, const Tensor& x, const Tensor& weight) override;
  void embedding_forward(Tensor& out, const Tensor& weight, const Tensor& ids) override;
  void embedding_backward(Tensor& grad_weight, const Tensor& grad_out, const Tensor& ids) override;
  void attention_forward(Tensor& context, Tensor& probabilities, const Tensor& qkv,
                         std::int64_t heads) override;
  void attention_backward(Tensor& grad_qkv, const Tensor& grad_context, const Tensor& qkv,
                          const Tensor& probabilities, std::int64_t heads) override;
  void layer_norm_forward(Tensor& out, Tensor& mean, Tensor& inverse_deviation, const Tensor& x,
                          const Tensor& weight, const Tensor& bias, double eps) override;
  void layer_norm_backward(Tensor& grad_x, Tensor& grad_weight, Tensor& grad_bias,
                           const Tensor& grad_out, const Tensor& x, const Tensor& mean,
                           const Tensor& inverse_deviation, const Tensor& weight) override;
  void batch_norm_forward(Tensor& out, Tensor& mean, Tensor& inverse_deviation,
                          Tensor& running_mean, Tensor& running_variance, const Tensor& x,
                          const Tensor& weight, const Tensor& bias, double momentum,
                          double eps) override;
  void batch_norm_backward(Tensor& grad_x, Tensor& grad_weight, Tensor& grad_bias,
                           const Tensor& grad_out, const Tensor& x, const Tensor& mean,
                           const Tensor& inverse_deviation, const Tensor& weight) override;
  void relu_forward(Tensor& out, const Tensor& x) override;
  void relu_backward(Tensor& grad_x, const Tensor& grad_out, const Tensor& out) override;
  void add_forward(Tensor& out, const Tensor& a, const Tensor& b) override;
  void sum_forward(Tensor& out, const Tensor& x) override;
  void sum_backward(Tensor& grad_x, const Tensor& grad_out) override;
  void cross_entropy_forward(Tensor& loss, Tensor& log_normalizer, const Tensor& logits,
                             const Tensor& targets) override;
  void cross_entropy_backward(Tensor& grad_logits, const Tensor& grad_loss, const Tensor& logits,
                              const Tensor& log_normalizer, const Tensor& targets) override;

 private:
  void multiply(MatrixProduct product, const MatrixOperand& into);

  CudaApi& api_;
  CudaStream stream_;
  CublasApi& products_;
  std::int64_t* bad_index_;  // pinned; written by kernels on a bad index
};

}  // namespace gradsync
