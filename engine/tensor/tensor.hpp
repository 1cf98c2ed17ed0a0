#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "gradsync/tensor/device.hpp"
#include "gradsync/tensor/dtype.hpp"

namespace gradsync {

/// Sizes of the dimensions, outermost first; empty for a scalar.
using Shape = std::vector<std::int64_t>;

std::int64_t numel_of(const Shape& shape) noexcept;
/// "[3, 4]"
std::string to_string(const Shape& shape);

/// A contiguous, row-major array on a device: shared storage, an offset, a shape, a dtype. Copying
/// a Tensor copies the handle; the bytes are shared. Not synchronised: one rank, one thread.
class Tensor {
 public:
  /// An undefined tensor, like PyTorch's None for a gradient.
  Tensor() = default;

  static Tensor empty(Shape shape, DType dtype, Device& device);
  static Tensor zeros(Shape shape, DType dtype, Device& device);
  /// A CPU tensor with a copy of `values`; numel must equal values.size().
  template <typename T>
  static Tensor from(const std::vector<T>& values, Shape shape);

  bool defined() const noexcept { return storage_ != nullptr; }
  const Shape& shape() const noexcept { return shape_; }
  std::int64_t numel() const noexcept { return numel_; }
  DType dtype() const noexcept { return dtype_; }
  Bytes nbytes() const noexcept;
  Device& device() const noexcept { return *device_; }
  bool is_meta() const noexcept { return device_->type() == DeviceType::kMeta; }

  /// Same storage and elements, another shape of equal numel.
  Tensor view(Shape shape) const;
  /// `count` elements from flat position `offset` on, as a tensor of `shape` over the same storage.
  Tensor slice(std::int64_t offset, Shape shape) const;
  /// True if both start at the same element of the same storage (a gradient that is its bucket
  /// view).
  bool aliases(const Tensor& other) const noexcept;
  /// True if no other tensor shares the storage: a change in place is then seen by nobody else.
  bool unique() const noexcept { return storage_.use_count() == 1; }
  /// A new tensor of the same shape, dtype and device with the same elements.
  Tensor clone() const;
  Tensor empty_like() const;
  Tensor zeros_like() const;

  /// First byte; null on meta.
  std::byte* data() const noexcept;
  /// The elements as T on the CPU; throws Error(kInternal) for another dtype or device.
  template <typename T>
  std::span<T> span() const;

 private:
  std::shared_ptr<Storage> storage_;
  Device* device_ = nullptr;
  Shape shape_;
  std::int64_t numel_ = 0;
  std::int64_t offset_ = 0;  // in elements
  DType dtype_ = DType::kFloat32;
};

}  // namespace gradsync
