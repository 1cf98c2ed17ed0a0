#pragma once

#include <span>
#include <string>
#include <vector>

#include "gradsync/comm/flight_recorder.hpp"

namespace gradsync::diagnosis {

/// Wording shared by the rules. Nothing here mentions a time.

/// "allreduce #5 of 1567208 float32 elements, step 2 (epoch 0) backward, bucket 0 (gradients)"
std::string describe_collective(const CollectiveRecord& record);

/// " with parameters a, b and 10 more"; empty if the collective has none.
std::string with_parameters(const CollectiveRecord& record);

/// True for collectives that DDP and the engine issue themselves, in every program.
bool is_of_ddp(const CollectiveRecord& record);

/// " at metrics.py:54" for a collective of user code. Empty if no call site was recorded, and for
/// DDP's collectives, whose call site is always the training loop.
std::string own_site_of(const CollectiveRecord& record);

/// "waits" or "wait", by the number of ranks.
const char* verb(std::span<const int> ranks, const char* one, const char* many);

/// "3 samples", "1 sample".
std::string count_of(std::int64_t count, const char* noun);

/// "signal 9 (SIGKILL)".
std::string describe_signal(int signal);

}  // namespace gradsync::diagnosis
