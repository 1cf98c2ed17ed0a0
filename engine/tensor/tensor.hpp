#pragma once

#include <cstdint>
#include <functional>
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
/// a Tensor copies the handle; the data is shared. Not synchronized: one rank, one thread.
class Tensor {
 public:
  /// An undefined tensor, like PyTorch's None for a gradient.
  Tensor() = default;

  static Tensor empty(Shape shape, DType dtype, Device& device);
  static Tensor zeros(Shape shape, DType dtype, Device& device);
  /// A CPU tensor with a copy of `values`; numel must equal values.size().
  template <typename T>
  static Tensor from(const std::vector<T>& values, Shape shape);

  /// A tensor over caller-owned memory, without a copy: torch.from_blob. `data` points to numel
  /// elements, row-major: host memory for the CPU, memory of that GPU for a CUDA device (pending
  /// writes to it must be ordered before the device's compute stream).
  ///
  /// Lifetime: the memory must stay valid until the last tensor over it is destroyed, including
  /// views and slices. Then `deleter(data)` is called once, on the thread that destroyed that
  /// tensor; it must not throw. Without a deleter the caller frees the memory, after that.
  ///
  /// Alignment: at least that of the element. With 64 bytes, as tensors of `empty` have, matrix
  /// products give the same bits as with those; with less, they may differ in the last bit.
  ///
  /// In-place operations (averaging a gradient, an optimizer step on `data`) write to this memory.
  /// Throws Error(kMisuse) for a negative size, a null pointer to elements, a misaligned address,
  /// or the meta device; the caller then still owns the memory, and `deleter` is not called.
  static Tensor from_blob(void* data, Shape shape, DType dtype, Device& device,
                          std::function<void(void*)> deleter = {});

  bool defined() const noexcept { return storage_ != nullptr; }
  const Shape& shape() const noexcept { return shape_; }
  std::int64_t numel() const noexcept { return numel_; }
  DType dtype() const noexcept { return dtype_; }
  Bytes nbytes() const noexcept;
  Device& device() const noexcept { return *device_; }
  bool is_meta() const noexcept { return device_->type() == DeviceType::kMeta; }

  /// Same storage and elements, with another shape of equal numel.
  Tensor view(Shape shape) const;
  /// A tensor of `shape` over the same storage, starting at flat position `offset`.
  Tensor slice(std::int64_t offset, Shape shape) const;
  /// True if both start at the same element of the same storage (e.g. a gradient and its bucket
  /// view).
  bool aliases(const Tensor& other) const noexcept;
  /// True if nobody else sees in-place changes: no other tensor shares the storage, and it is not
  /// the program's memory (from_blob).
  bool unique() const noexcept { return storage_.use_count() == 1 && !storage_->is_foreign(); }
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

/// The elements as T, without a check of dtype and device; null for an undefined tensor.
template <typename T>
T* elements(const Tensor& tensor) {
  return reinterpret_cast<T*>(tensor.data());
}

}  // namespace gradsync
