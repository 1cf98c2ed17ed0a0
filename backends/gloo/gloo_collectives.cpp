#include "gradsync/backends/gloo/gloo_collectives.hpp"

#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/alltoallv.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/reduce.h>

#include <cstring>

#include "gradsync/comm/reduce_functions.hpp"
#include "gradsync/core/error.hpp"

namespace gradsync {
namespace {

/// Calls `f` with a value of an unsigned type of the element's width: Gloo needs a type, but only
/// its size matters (the reduction is ours).
template <typename F>
void with_element_type(DType dtype, const F& f) {
  switch (element_size(dtype)) {
    case 1:
      return f(std::uint8_t{});
    case 2:
      return f(std::uint16_t{});
    case 4:
      return f(std::uint32_t{});
    case 8:
      return f(std::uint64_t{});
  }
  throw Error(ErrorCode::kInternal, "gloo: no such element size");
}

std::uint8_t* bytes(const Tensor& tensor) {
  return reinterpret_cast<std::uint8_t*>(tensor.data());
}

}  // namespace

void gloo_allreduce(const std::shared_ptr<gloo::Context>& context, std::uint32_t tag,
                    const Tensor& tensor, ReduceOp op) {
  if (tensor.numel() == 0) return;
  gloo::AllreduceOptions options(context);
  with_element_type(tensor.dtype(), [&](auto element) {
    options.setOutput(reinterpret_cast<decltype(element)*>(tensor.data()),
                      static_cast<std::size_t>(tensor.numel()));
  });
  options.setReduceFunction(reduce_function(op, tensor.dtype()));
  options.setAlgorithm(gloo::AllreduceOptions::Algorithm::RING);
  options.setTag(tag);
  gloo::allreduce(options);
}

void gloo_broadcast(const std::shared_ptr<gloo::Context>& context, std::uint32_t tag,
                    const Tensor& tensor, int root) {
  if (tensor.numel() == 0) return;
  gloo::BroadcastOptions options(context);
  options.setOutput(bytes(tensor), static_cast<std::size_t>(tensor.nbytes()));
  options.setRoot(root);
  options.setTag(tag);
  gloo::broadcast(options);
}

void gloo_allgather(const std::shared_ptr<gloo::Context>& context, std::uint32_t tag,
                    const Tensor& output, const Tensor& input) {
  if (input.numel() == 0) return;
  gloo::AllgatherOptions options(context);
  // In place, Gloo expects the input in the output.
  const bool in_place = input.data() == output.data() + context->rank * input.nbytes();
  if (!in_place) options.setInput(bytes(input), static_cast<std::size_t>(input.nbytes()));
  options.setOutput(bytes(output), static_cast<std::size_t>(output.nbytes()));
  options.setTag(tag);
  gloo::allgather(options);
}

void gloo_reduce(const std::shared_ptr<gloo::Context>& context, std::uint32_t tag,
                 const Tensor& tensor, int root, ReduceOp op) {
  if (tensor.numel() == 0 || context->size == 1) return;
  const Tensor target = context->rank == root ? tensor : tensor.clone();
  gloo::ReduceOptions options(context);
  with_element_type(tensor.dtype(), [&](auto element) {
    options.setOutput(reinterpret_cast<decltype(element)*>(target.data()),
                      static_cast<std::size_t>(target.numel()));
  });
  options.setReduceFunction(reduce_function(op, tensor.dtype()));
  options.setRoot(root);
  options.setTag(tag);
  gloo::reduce(options);
}

void gloo_reduce_scatter(const std::shared_ptr<gloo::Context>& context, std::uint32_t tag,
                         const Tensor& output, const Tensor& input, ReduceOp op) {
  if (input.numel() == 0) return;
  const Tensor sums = input.clone();
  gloo_allreduce(context, tag, sums, op);
  std::memcpy(output.data(), sums.data() + context->rank * output.nbytes(),
              static_cast<std::size_t>(output.nbytes()));
}

void gloo_alltoall(const std::shared_ptr<gloo::Context>& context, std::uint32_t tag,
                   const Tensor& output, const Tensor& input, const AlltoallSplits& splits) {
  const auto in_bytes = [&](std::vector<std::int64_t> sizes) {
    for (std::int64_t& size : sizes) {
      size *= static_cast<std::int64_t>(element_size(input.dtype()));
    }
    return sizes;
  };
  gloo::AlltoallvOptions options(context);
  options.setInput(bytes(input), in_bytes(splits.input));
  options.setOutput(bytes(output), in_bytes(splits.output));
  options.setTag(tag);
  gloo::alltoallv(options);
}

void gloo_barrier(const std::shared_ptr<gloo::Context>& context, std::uint32_t tag) {
  gloo::BarrierOptions options(context);
  options.setTag(tag);
  gloo::barrier(options);
}

}  // namespace gradsync
