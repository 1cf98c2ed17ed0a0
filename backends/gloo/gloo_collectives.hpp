#pragma once

#include <cstdint>
#include <memory>

#include <gloo/context.h>

#include "gradsync/comm/flight_recorder.hpp"
#include "gradsync/tensor/tensor.hpp"

namespace gradsync {

/// Gloo's collectives on CPU tensors. They block until this rank has its result and throw
/// TransferError. Every rank calls the same one with the same `tag`; at one time no other
/// collective of the context may use that tag.

void gloo_allreduce(const std::shared_ptr<gloo::Context>& context, std::uint32_t tag,
                    const Tensor& tensor, ReduceOp op);
void gloo_broadcast(const std::shared_ptr<gloo::Context>& context, std::uint32_t tag,
                    const Tensor& tensor, int root);
void gloo_allgather(const std::shared_ptr<gloo::Context>& context, std::uint32_t tag,
                    const Tensor& output, const Tensor& input);
void gloo_barrier(const std::shared_ptr<gloo::Context>& context, std::uint32_t tag);

}  // namespace gradsync
