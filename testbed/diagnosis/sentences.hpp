#pragma once

#include <span>
#include <string>
#include <vector>

#include "gradsync/comm/flight_recorder.hpp"

namespace gradsync::diagnosis {

/// Wording that the rules share. Nothing here names a time.

/// "allreduce #5 of 1567208 float32 elements, step 2 (epoch 0) backward, bucket 0 (gradients)"
std::string describe_collective(const CollectiveRecord& record);

/// " with parameters a, b and 10 more"; empty where the collective has none.
std::string with_parameters(const CollectiveRecord& record);

/// True for what DDP and the engine communicate for themselves, in every program alike.
bool is_of_ddp(const CollectiveRecord& record);

/// " at metrics.py:54" for a collective of the program's own; empty for one of DDP, whose call site
/// is always the training loop, and where none was noted.
std::string own_site_of(const CollectiveRecord& record);

/// "waits" or "wait", by the number of ranks.
const char* verb(std::span<const int> ranks, const char* one, const char* many);

/// "3 samples", "1 sample".
std::string count_of(std::int64_t count, const char* noun);

/// "signal 9 (SIGKILL)".
std::string describe_signal(int signal);

}  // namespace gradsync::diagnosis
