#pragma once

#include <cstdint>
#include <memory>

#include <gloo/context.h>

#include "gradsync/comm/flight_recorder.hpp"
#include "gradsync/tensor/tensor.hpp"

namespace gradsync {

/// Gloo's collectives on CPU tensors. They block until this rank has its result; they throw
/// TransferError. Every rank must call the same collective with the same `tag`, which no concurrent
/// collective of the context may use.

void gloo_allreduce(const std::shared_ptr<gloo::Context>& context, std::uint32_t tag,
                    const Tensor& tensor, ReduceOp op);
void gloo_broadcast(const std::shared_ptr<gloo::Context>& context, std::uint32_t tag,
                    const Tensor& tensor, int root);
void gloo_allgather(const std::shared_ptr<gloo::Context>& context, std::uint32_t tag,
                    const Tensor& output, const Tensor& input);
/// Changes the tensor on `root` only.
void gloo_reduce(const std::shared_ptr<gloo::Context>& context, std::uint32_t tag,
                 const Tensor& tensor, int root, ReduceOp op);
/// An all-reduce of a copy of `input`. `output` may be a part of `input`.
void gloo_reduce_scatter(const std::shared_ptr<gloo::Context>& context, std::uint32_t tag,
                         const Tensor& output, const Tensor& input, ReduceOp op);
/// `splits` are in elements, and agree on all ranks.
void gloo_alltoall(const std::shared_ptr<gloo::Context>& context, std::uint32_t tag,
                   const Tensor& output, const Tensor& input, const AlltoallSplits& splits);
void gloo_barrier(const std::shared_ptr<gloo::Context>& context, std::uint32_t tag);

}  // namespace gradsync
