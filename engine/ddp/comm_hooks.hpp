#pragma once

#include <string>
#include <vector>

#include "gradsync/ddp/comm_hook.hpp"
#include "gradsync/ddp/power_sgd.hpp"

namespace gradsync {

/// Divides the bucket by the number of ranks and all-reduces it: PyTorch's allreduce_hook. Equals
/// DDP's behavior without a hook, up to the rounding of the division.
CommHook allreduce_hook();

/// Casts the bucket to float16 or bfloat16, divides and all-reduces it in that type, and casts it
/// back: fp16_compress_hook and bf16_compress_hook. Halves the traffic. Gradients beyond the type's
/// range become infinite, and each addition rounds to the type's precision.
CommHook fp16_compress_hook();
CommHook bf16_compress_hook();

/// Looks up a hook by name: "allreduce", "fp16_compress", "bf16_compress", "power_sgd",
/// "batched_power_sgd" (the last two use `power_sgd`). Throws Error(kMisuse) for any other name,
/// listing these.
CommHook make_comm_hook(const std::string& name, const PowerSgdOptions& power_sgd = {});
const std::vector<std::string>& comm_hook_names();

}  // namespace gradsync
