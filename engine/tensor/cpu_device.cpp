#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <new>

#include "gradsync/core/error.hpp"
#include "gradsync/tensor/cpu_kernels.hpp"
#include "gradsync/tensor/cpu_layers.hpp"
#include "gradsync/tensor/element.hpp"
#include "gradsync/tensor/tensor.hpp"

namespace gradsync {
namespace {

constexpr std::size_t kAlignment = 64;  // bytes: a cache line, and the widest vector

class CpuStorage final : public Storage {
 public:
  explicit CpuStorage(Bytes nbytes) : Storage(allocate_aligned(nbytes), nbytes) {}
  ~CpuStorage() override { std::free(data()); }
  CpuStorage(const CpuStorage&) = delete;
  CpuStorage& operator=(const CpuStorage&) = delete;

 private:
  static std::byte* allocate_aligned(Bytes nbytes) {
    const auto wanted = std::max<std::size_t>(static_cast<std::size_t>(nbytes), 1);
    const std::size_t rounded = (wanted + kAlignment - 1) / kAlignment * kAlignment;
    void* memory = std::aligned_alloc(kAlignment, rounded);
    if (memory == nullptr) throw std::bad_alloc();
    return static_cast<std::byte*>(memory);
  }
};

std::string describe(const Tensor& tensor) {
  if (!tensor.defined()) return "undefined";
  return std::string(to_string(tensor.dtype())) + to_string(tensor.shape()) + " on " +
         tensor.device().name();
}

[[noreturn]] void mismatch(const char* operation, const Tensor& a, const Tensor& b) {
  throw Error(ErrorCode::kInternal,
              std::string(operation) + " cannot combine " + describe(a) + " with " + describe(b));
}

void require_cpu(const char* operation, const Tensor& tensor) {
  if (!tensor.defined() || tensor.device().type() != DeviceType::kCpu) {
    throw Error(ErrorCode::kInternal,
                std::string(operation) + " on the CPU was given " + describe(tensor));
  }
}

void require_same(const char* operation, const Tensor& a, const Tensor& b) {
  require_cpu(operation, a);
  require_cpu(operation, b);
  if (a.dtype() != b.dtype() || a.numel() != b.numel()) mismatch(operation, a, b);
}

std::size_t count_of(const Tensor& tensor) {
  return static_cast<std::size_t>(tensor.numel());
}

/// PyTorch's conversions: floats to integers truncate; float64 is converted to 16-bit types through
/// float32.
template <typename To, typename From>
To convert(From value) {
  return static_cast<To>(static_cast<MathType<To>>(static_cast<MathType<From>>(value)));
}

class CpuDevice final : public Device {
 public:
  DeviceType type() const noexcept override { return DeviceType::kCpu; }
  std::string name() const override { return "cpu"; }

  std::shared_ptr<Storage> allocate(Bytes nbytes) override {
    return std::make_shared<CpuStorage>(nbytes);
  }

  void copy(Tensor& dst, const Tensor& src) override {
    require_same("copy", dst, src);
    std::memmove(dst.data(), src.data(), static_cast<std::size_t>(src.nbytes()));
  }

  void fill(Tensor& dst, double value) override {
    require_cpu("fill", dst);
    if (value == 0 && !std::signbit(value)) {
      std::memset(dst.data(), 0, static_cast<std::size_t>(dst.nbytes()));
      return;
    }
    with_element_type(dst.dtype(), [&](auto tag) {
      using T = decltype(tag);
      std::fill_n(elements<T>(dst), count_of(dst), convert<T>(value));
    });
  }

  void add(Tensor& dst, const Tensor& src) override {
    require_same("add", dst, src);
    with_element_type(dst.dtype(), [&](auto tag) {
      using T = decltype(tag);
      cpu::add(elements<T>(dst), elements<const T>(src), count_of(dst));
    });
  }

  void scale(Tensor& dst, const Tensor& src, double factor) override {
    require_same("scale", dst, src);
    with_floating_type(dst.dtype(), "scale", [&](auto tag) {
      using T = decltype(tag);
      cpu::scale(elements<T>(dst), elements<const T>(src), factor, count_of(dst));
    });
  }

  void divide(Tensor& dst, double divisor) override {
    require_cpu("divide", dst);
    with_floating_type(dst.dtype(), "divide", [&](auto tag) {
      using T = decltype(tag);
      cpu::divide(elements<T>(dst), divisor, count_of(dst));
    });
  }

  void cast(Tensor& dst, const Tensor& src) override {
    require_cpu("cast", dst);
    require_cpu("cast", src);
    if (dst.numel() != src.numel()) mismatch("cast", dst, src);
    if (dst.dtype() == src.dtype()) return copy(dst, src);
    with_element_type(dst.dtype(), [&](auto to) {
      with_element_type(src.dtype(), [&](auto from) {
        using To = decltype(to);
        using From = decltype(from);
        std::transform(elements<const From>(src), elements<const From>(src) + src.numel(),
                       elements<To>(dst), convert<To, From>);
      });
    });
  }

  double norm(const Tensor& tensor, double p) override {
    require_cpu("norm", tensor);
    return with_floating_type(tensor.dtype(), "norm", [&](auto tag) -> double {
      using T = decltype(tag);
      const T* x = elements<const T>(tensor);
      if (p == 2) return cpu::norm_2(x, count_of(tensor));
      if (p == 1) return cpu::norm_1(x, count_of(tensor));
      if (std::isinf(p) && p > 0) return cpu::norm_inf(x, count_of(tensor));
      if (p > 0) return cpu::norm_p(x, p, count_of(tensor));
      throw Error(ErrorCode::kInternal,
                  "the norm of order " + std::to_string(p) + " is not taken: p must be positive");
    });
  }

  void adamw_step(Tensor& param, const Tensor& grad, Tensor& exp_avg, Tensor& exp_avg_sq,
                  Tensor& max_exp_avg_sq, const AdamWStep& step) override {
    require_same("adamw_step", param, grad);
    require_same("adamw_step", param, exp_avg);
    require_same("adamw_step", param, exp_avg_sq);
    if (max_exp_avg_sq.defined()) require_same("adamw_step", param, max_exp_avg_sq);
    with_floating_type(param.dtype(), "adamw_step", [&](auto tag) {
      using T = decltype(tag);
      cpu::adamw(elements<T>(param), elements<const T>(grad), elements<T>(exp_avg),
                 elements<T>(exp_avg_sq), elements<T>(max_exp_avg_sq), step, count_of(param));
    });
  }

  void sgd_step(Tensor& param, const Tensor& grad, Tensor& momentum_buffer,
                const SgdStep& step) override {
    require_same("sgd_step", param, grad);
    if (momentum_buffer.defined()) require_same("sgd_step", param, momentum_buffer);
    with_floating_type(param.dtype(), "sgd_step", [&](auto tag) {
      using T = decltype(tag);
      cpu::sgd(elements<T>(param), elements<const T>(grad), elements<T>(momentum_buffer), step,
               count_of(param));
    });
  }

  Kernels& kernels() noexcept override { return cpu_layers(); }

  void copy_to_host(std::span<std::byte> dst, const Tensor& src) override {
    require_cpu("copy_to_host", src);
    require_bytes("copy_to_host", src, dst.size());
    std::copy_n(src.data(), dst.size(), dst.data());
  }

  void copy_from_host(Tensor& dst, std::span<const std::byte> src) override {
    require_cpu("copy_from_host", dst);
    require_bytes("copy_from_host", dst, src.size());
    std::copy_n(src.data(), src.size(), dst.data());
  }

 private:
  static void require_bytes(const char* operation, const Tensor& tensor, std::size_t nbytes) {
    if (static_cast<std::size_t>(tensor.nbytes()) != nbytes) {
      throw Error(ErrorCode::kInternal, std::string(operation) + " of " + describe(tensor) +
                                            " was given " + std::to_string(nbytes) + " bytes");
    }
  }
};

}  // namespace

Device& cpu_device() {
  static CpuDevice device;
  return device;
}

}  // namespace gradsync
