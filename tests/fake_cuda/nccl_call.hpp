#pragma once

#include <cstddef>
#include <vector>

#include "gradsync/backends/nccl/nccl_api.hpp"

namespace gradsync::test {

/// One rank's call of a collective of the stand-ins for NCCL.
struct NcclCall {
  enum class Kind { kAllReduce, kBroadcast, kAllGather, kReduce, kReduceScatter };
  Kind kind;
  const void* send;
  void* receive;
  std::size_t count;
  DType dtype;
  NcclReduceOp op = NcclReduceOp::kSum;
  int root = 0;

  /// The bytes that a rank passes in.
  std::size_t input_bytes(std::size_t ranks) const {
    const std::size_t parts = kind == Kind::kReduceScatter ? ranks : 1;
    return parts * count * element_size(dtype);
  }
  /// Writes what `rank` gets, from the inputs of all ranks. No input may be overwritten before all
  /// ranks have theirs, so they are copies.
  void finish(const std::vector<const std::byte*>& inputs, int rank) const;
};

/// One send or recv of the stand-ins.
struct NcclMessage {
  bool sends;
  void* data;
  std::size_t bytes;
  int peer;
};

/// What an all-reduce of `inputs` (one buffer a rank) gives on NCCL's ring with one channel: rank c
/// ends with chunk c, whose sum starts at rank c + 1 and goes around; every hop rounds.
std::vector<std::byte> nccl_ring_allreduce(const std::vector<const std::byte*>& inputs,
                                           std::size_t count, DType dtype, NcclReduceOp op);

}  // namespace gradsync::test
