#include "gradsync/tensor/tensor.hpp"

#include <algorithm>

#include "gradsync/core/error.hpp"
#include "gradsync/tensor/element.hpp"

namespace gradsync {
namespace {

[[noreturn]] void fail(const std::string& message) {
  throw Error(ErrorCode::kInternal, message);
}

/// Memory lent by the program.
class ForeignStorage final : public Storage {
 public:
  ForeignStorage(void* data, Bytes nbytes, std::function<void(void*)> deleter)
      : Storage(static_cast<std::byte*>(data), nbytes, /*is_foreign=*/true),
        deleter_(std::move(deleter)) {}
  ~ForeignStorage() override {
    if (deleter_) deleter_(data());
  }
  ForeignStorage(const ForeignStorage&) = delete;
  ForeignStorage& operator=(const ForeignStorage&) = delete;

 private:
  std::function<void(void*)> deleter_;
};

bool has_negative_size(const Shape& shape) {
  return std::any_of(shape.begin(), shape.end(), [](std::int64_t size) { return size < 0; });
}

void check_blob(const void* data, const Shape& shape, DType dtype, const Device& device) {
  const auto refuse = [&](const std::string& reason) {
    throw Error(ErrorCode::kMisuse, "from_blob: " + std::string(to_string(dtype)) +
                                        to_string(shape) + " on " + device.name() + ": " + reason);
  };
  if (has_negative_size(shape)) refuse("a size is negative");
  if (device.type() == DeviceType::kMeta) refuse("tensors there have no memory");
  if (data == nullptr && numel_of(shape) > 0) refuse("the pointer is null");
  const std::size_t size = element_size(dtype);
  if (reinterpret_cast<std::uintptr_t>(data) % size != 0) {
    refuse("the address is not a multiple of the element's " + std::to_string(size) + " bytes");
  }
}

}  // namespace

std::int64_t numel_of(const Shape& shape) noexcept {
  std::int64_t numel = 1;
  for (const std::int64_t size : shape) numel *= size;
  return numel;
}

std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  }
  return text + "]";
}

Tensor Tensor::empty(Shape shape, DType dtype, Device& device) {
  if (has_negative_size(shape)) {
    fail("a tensor cannot have the shape " + to_string(shape));
  }
  Tensor tensor;
  tensor.numel_ = numel_of(shape);
  tensor.shape_ = std::move(shape);
  tensor.dtype_ = dtype;
  tensor.device_ = &device;
  tensor.storage_ = device.allocate(tensor.nbytes());
  return tensor;
}

Tensor Tensor::zeros(Shape shape, DType dtype, Device& device) {
  Tensor tensor = empty(std::move(shape), dtype, device);
  device.fill(tensor, 0);
  return tensor;
}

Tensor Tensor::from_blob(void* data, Shape shape, DType dtype, Device& device,
                         std::function<void(void*)> deleter) {
  check_blob(data, shape, dtype, device);
  Tensor tensor;
  tensor.numel_ = numel_of(shape);
  tensor.shape_ = std::move(shape);
  tensor.dtype_ = dtype;
  tensor.device_ = &device;
  tensor.storage_ = std::make_shared<ForeignStorage>(data, tensor.nbytes(), std::move(deleter));
  return tensor;
}

template <typename T>
Tensor Tensor::from(const std::vector<T>& values, Shape shape) {
  if (numel_of(shape) != static_cast<std::int64_t>(values.size())) {
    fail(std::to_string(values.size()) + " values do not fill the shape " + to_string(shape));
  }
  Tensor tensor = empty(std::move(shape), DTypeOf<T>::value, cpu_device());
  std::copy(values.begin(), values.end(), tensor.span<T>().begin());
  return tensor;
}

Bytes Tensor::nbytes() const noexcept {
  return numel_ * static_cast<Bytes>(element_size(dtype_));
}

Tensor Tensor::view(Shape shape) const {
  if (numel_of(shape) != numel_) {
    fail("a tensor of shape " + to_string(shape_) + " cannot be viewed as " + to_string(shape));
  }
  return slice(0, std::move(shape));
}

Tensor Tensor::slice(std::int64_t offset, Shape shape) const {
  const std::int64_t count = numel_of(shape);
  if (offset < 0 || count < 0 || offset + count > numel_) {
    fail("elements " + std::to_string(offset) + " to " + std::to_string(offset + count) +
         " are outside a tensor of shape " + to_string(shape_));
  }
  Tensor tensor = *this;
  tensor.shape_ = std::move(shape);
  tensor.numel_ = count;
  tensor.offset_ += offset;
  return tensor;
}

bool Tensor::aliases(const Tensor& other) const noexcept {
  return defined() && storage_ == other.storage_ && offset_ == other.offset_;
}

Tensor Tensor::clone() const {
  Tensor tensor = empty_like();
  device_->copy(tensor, *this);
  return tensor;
}

Tensor Tensor::empty_like() const {
  if (!defined()) fail("an undefined tensor has no shape to copy");
  return empty(shape_, dtype_, *device_);
}

Tensor Tensor::zeros_like() const {
  if (!defined()) fail("an undefined tensor has no shape to copy");
  return zeros(shape_, dtype_, *device_);
}

std::byte* Tensor::data() const noexcept {
  if (!storage_ || storage_->data() == nullptr) return nullptr;
  return storage_->data() + offset_ * static_cast<std::int64_t>(element_size(dtype_));
}

template <typename T>
std::span<T> Tensor::span() const {
  if (!defined()) fail("an undefined tensor has no elements");
  if (device_->type() != DeviceType::kCpu) {
    fail("the elements of a tensor on " + device_->name() + " cannot be read by the host");
  }
  if (dtype_ != DTypeOf<T>::value) {
    fail("a tensor of " + std::string(to_string(dtype_)) + " was read as " +
         std::string(to_string(DTypeOf<T>::value)));
  }
  return {reinterpret_cast<T*>(data()), static_cast<std::size_t>(numel_)};
}

#define GRADSYNC_INSTANTIATE(T)                                  \
  template Tensor Tensor::from<T>(const std::vector<T>&, Shape); \
  template std::span<T> Tensor::span<T>() const;
GRADSYNC_INSTANTIATE(float)
GRADSYNC_INSTANTIATE(double)
GRADSYNC_INSTANTIATE(Half)
GRADSYNC_INSTANTIATE(BFloat16)
GRADSYNC_INSTANTIATE(std::int32_t)
GRADSYNC_INSTANTIATE(std::int64_t)
GRADSYNC_INSTANTIATE(std::uint8_t)
#undef GRADSYNC_INSTANTIATE

}  // namespace gradsync
