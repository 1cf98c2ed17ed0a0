#include "gradsync/ddp/comm_hooks.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gradsync/core/error.hpp"

namespace gradsync {
namespace {

CommHook compress_hook(DType dtype, std::string what) {
  return [dtype, what = std::move(what)](GradBucket& bucket,
                                         const CommHookContext& context) -> BucketFuture {
    Tensor buffer = bucket.buffer();
    Tensor compressed = Tensor::empty(buffer.shape(), dtype, buffer.device());
    buffer.device().cast(compressed, buffer);
    buffer.device().divide(compressed, context.group().size());
    WorkPtr work = context.group().allreduce(compressed, ReduceOp::kSum, context.options(what));
    return [work = std::move(work), compressed, buffer]() mutable {
      work->wait();
      buffer.device().cast(buffer, compressed);
      return buffer;
    };
  };
}

}  // namespace

CommHook allreduce_hook() {
  return [](GradBucket& bucket, const CommHookContext& context) -> BucketFuture {
    Tensor buffer = bucket.buffer();
    buffer.device().divide(buffer, context.group().size());
    WorkPtr work = context.group().allreduce(buffer, ReduceOp::kSum, context.options("gradients"));
    return [work = std::move(work), buffer] {
      work->wait();
      return buffer;
    };
  };
}

CommHook fp16_compress_hook() {
  return compress_hook(DType::kFloat16, "gradients as float16");
}

CommHook bf16_compress_hook() {
  return compress_hook(DType::kBFloat16, "gradients as bfloat16");
}

const std::vector<std::string>& comm_hook_names() {
  static const std::vector<std::string> names{"allreduce", "fp16_compress", "bf16_compress",
                                              "power_sgd", "batched_power_sgd"};
  return names;
}

CommHook make_comm_hook(const std::string& name, const PowerSgdOptions& power_sgd) {
  if (name == "allreduce") return allreduce_hook();
  if (name == "fp16_compress") return fp16_compress_hook();
  if (name == "bf16_compress") return bf16_compress_hook();
  if (name == "power_sgd") return power_sgd_hook(power_sgd);
  if (name == "batched_power_sgd") return batched_power_sgd_hook(power_sgd);
  throw Error(ErrorCode::kMisuse, fmt::format("unknown communication hook \"{}\"; there are {}",
                                              name, fmt::join(comm_hook_names(), ", ")));
}

}  // namespace gradsync
