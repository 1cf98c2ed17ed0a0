#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "gradsync/tensor/dtype.hpp"

namespace gradsync {

/// A tensor's bytes on their way to the host (Device::read). It must not outlive the device.
class HostRead {
 public:
  virtual ~HostRead() = default;
  /// Waits until they are there. They are as the tensor was when the read was asked for.
  virtual std::span<const std::byte> bytes() = 0;
  /// Of a tensor of one floating-point element: its value. Waits.
  double value();

 protected:
  explicit HostRead(DType dtype) : dtype_(dtype) {}

 private:
  DType dtype_;
};

}  // namespace gradsync
