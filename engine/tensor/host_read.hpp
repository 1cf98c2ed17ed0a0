#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "gradsync/tensor/dtype.hpp"

namespace gradsync {

/// An asynchronous copy of a tensor to the host (Device::read). It must not outlive the device.
class HostRead {
 public:
  virtual ~HostRead() = default;
  /// Waits for the copy. The bytes are those the tensor had when the read was requested.
  virtual std::span<const std::byte> bytes() = 0;
  /// Waits, then returns the value of a floating-point tensor of one element.
  double value();

 protected:
  explicit HostRead(DType dtype) : dtype_(dtype) {}

 private:
  DType dtype_;
};

}  // namespace gradsync
