#pragma once

#include <functional>

#include "gradsync/comm/process_group.hpp"
#include "gradsync/tensor/device.hpp"
#include "tests/support/process_group_conformance.hpp"

namespace gradsync::test {

/// As RankFunction, with the device that the group's tensors are on.
using DeviceRankFunction = std::function<void(ProcessGroup&, Device&)>;
/// As World, for groups on any device.
using DeviceWorld = std::function<void(int size, const DeviceRankFunction&)>;

/// A world whose tensors are on the CPU.
DeviceWorld on_cpu(const World& world);

/// The contract of reduce, reduce_scatter, allgather into place, alltoall, send and recv
/// (engine/comm/process_group.hpp), as assertions of Catch's: values in every dtype, worlds of one
/// to four ranks, unequal splits, empty tensors, records, wrong arguments.
void check_operations_conformance(const DeviceWorld& world);

/// Ranks whose calls of these operations differ in shape, dtype, reduction, root, splits or
/// operation get an error that names a rank and the operation; nobody gets a wrong result.
void check_operation_mismatches(const DeviceWorld& world);

/// A rank that waits for an operation that another rank never issues gets a timeout. The world must
/// have a short one.
void check_operation_timeouts(const DeviceWorld& world);

}  // namespace gradsync::test
