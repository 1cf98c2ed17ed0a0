#include "gradsync/backends/gloo/gloo_collectives.hpp"

#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>

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
  options.setInput(bytes(input), static_cast<std::size_t>(input.nbytes()));
  options.setOutput(bytes(output), static_cast<std::size_t>(output.nbytes()));
  options.setTag(tag);
  gloo::allgather(options);
}

void gloo_barrier(const std::shared_ptr<gloo::Context>& context, std::uint32_t tag) {
  gloo::BarrierOptions options(context);
  options.setTag(tag);
  gloo::barrier(options);
}

}  // namespace gradsync
