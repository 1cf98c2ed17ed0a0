#pragma once

#include "gradsync/tensor/device.hpp"

namespace gradsync::test {

/// The contract of engine/tensor/device.hpp and kernels.hpp, as assertions of Catch's: every
/// operation on `device` against the CPU's, on the same values. One call a device.
///
/// Element by element (copies, casts, scaling, updates) bits are equal; where the order of a sum is
/// the device's own, results are near.
void check_device_conformance(Device& device);

}  // namespace gradsync::test
