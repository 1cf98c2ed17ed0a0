#include "gradsync/core/error.hpp"
#include "gradsync/tensor/kernels.hpp"
#include "gradsync/tensor/tensor.hpp"

namespace gradsync {
namespace {

class MetaStorage final : public Storage {
 public:
  explicit MetaStorage(Bytes nbytes) : Storage(nullptr, nbytes) {}
};

class MetaKernels final : public Kernels {
 public:
  using T = Tensor;
  void linear_forward(T&, const T&, const T&, const T&) override {}
  void linear_backward(T&, T&, T&, const T&, const T&, const T&) override {}
  void embedding_forward(T&, const T&, const T&) override {}
  void embedding_backward(T&, const T&, const T&) override {}
  void attention_forward(T&, T&, const T&, std::int64_t) override {}
  void attention_backward(T&, const T&, const T&, const T&, std::int64_t) override {}
  void layer_norm_forward(T&, T&, T&, const T&, const T&, const T&, double) override {}
  void layer_norm_backward(T&, T&, T&, const T&, const T&, const T&, const T&, const T&) override {}
  void batch_norm_forward(T&, T&, T&, T&, T&, const T&, const T&, const T&, double,
                          double) override {}
  void batch_norm_backward(T&, T&, T&, const T&, const T&, const T&, const T&, const T&) override {}
  void relu_forward(T&, const T&) override {}
  void relu_backward(T&, const T&, const T&) override {}
  void add_forward(T&, const T&, const T&) override {}
  void sum_forward(T&, const T&) override {}
  void sum_backward(T&, const T&) override {}
  void cross_entropy_forward(T&, T&, const T&, const T&) override {}
  void cross_entropy_backward(T&, const T&, const T&, const T&, const T&) override {}
};

/// Shapes without data: every operation on elements is a no-op.
class MetaDevice final : public Device {
 public:
  DeviceType type() const noexcept override { return DeviceType::kMeta; }
  std::string name() const override { return "meta"; }

  std::shared_ptr<Storage> allocate(Bytes nbytes) override {
    return std::make_shared<MetaStorage>(nbytes);
  }

  void copy(Tensor&, const Tensor&) override {}
  void fill(Tensor&, double) override {}
  void add(Tensor&, const Tensor&) override {}
  void scale(Tensor&, const Tensor&, double) override {}
  void divide(Tensor&, double) override {}
  void cast(Tensor&, const Tensor&) override {}
  double norm(const Tensor&, double) override { return 0; }
  void adamw_step(Tensor&, const Tensor&, Tensor&, Tensor&, Tensor&, const AdamWStep&) override {}
  void sgd_step(Tensor&, const Tensor&, Tensor&, const SgdStep&) override {}

  Kernels& kernels() noexcept override { return kernels_; }

  void copy_to_host(std::span<std::byte>, const Tensor&) override { no_bytes(); }
  void copy_from_host(Tensor&, std::span<const std::byte>) override { no_bytes(); }

 private:
  [[noreturn]] static void no_bytes() {
    throw Error(ErrorCode::kInternal,
                "a meta tensor has no bytes: its elements cannot be copied to or from the host");
  }

  MetaKernels kernels_;
};

}  // namespace

Device& meta_device() {
  static MetaDevice device;
  return device;
}

}  // namespace gradsync
